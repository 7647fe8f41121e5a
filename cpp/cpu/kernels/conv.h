// A convolution at known sizes, always with three spatial axes; what every conv kernel reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/kernels/image.h"

namespace rlx::cpu {

// Missing spatial axes come first, with extent 1. Padding behind the input follows from `out`.
struct ConvGeometry {
  int spatial = 0;  // how many of the axes the primitive has: the last ones
  int64_t batch = 0, groups = 1;
  int64_t in_channels = 0, out_channels = 0;  // of all groups
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, pad[3] = {0, 0, 0};
  bool transposed = false;
  ImageStrides x, y;

  int64_t in_per_group() const { return in_channels / groups; }
  int64_t out_per_group() const { return out_channels / groups; }
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t in_pixels() const { return in[0] * in[1] * in[2]; }
  int64_t out_pixels() const { return out[0] * out[1] * out[2]; }
  // Whether each output pixel is a product of the input pixel at its place.
  bool pointwise() const {
    for (int axis = 0; axis < 3; ++axis) {
      if (kernel[axis] != 1 || stride[axis] != 1 || pad[axis] != 0) return false;
      if (in[axis] != out[axis]) return false;
    }
    return true;
  }
};

// The taps of one output coordinate along one axis that read the input: tap + i * tap_step reads
// source + i * source_step, for i < count.
struct TapRun {
  int32_t tap = 0, source = 0, count = 0;
};

struct AxisTaps {
  int32_t tap_step = 1, source_step = 1;
  std::vector<TapRun> runs;  // one for each output coordinate
};

AxisTaps axis_taps(const ConvGeometry& geometry, int axis);

}  // namespace rlx::cpu
