// Resize along one axis: which input places, with which weights, make each output place.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rlx::cpu {

struct AxisResize {
  std::string mode, coordinates, nearest;
  double cubic_a = -0.75;
  bool exclude_outside = false, antialias = false;
  double scale = 1.0, roi_start = 0.0, roi_end = 1.0;
  int64_t input = 1, output = 1;
};

struct Taps {
  std::vector<int64_t> begin;   // output + 1 entries into index and weight
  std::vector<int64_t> index;
  std::vector<double> weight;
  std::vector<uint8_t> outside;  // tf_crop_and_resize: this place is extrapolated
  bool identity = true;          // every place reads itself with weight 1
};

// ONNX Resize's coordinate transformation and interpolation for one axis.
Taps resize_taps(const AxisResize& axis);

}  // namespace rlx::cpu
