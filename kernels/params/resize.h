// ONNX Resize along axes: coordinates, interpolation, and one filtered axis at a time.
#pragma once

#include "kernels/params/divisor.h"

namespace rlx::params {

enum class ResizeMode { nearest, linear, cubic };
enum class ResizeCoordinates {
  half_pixel, half_pixel_symmetric, pytorch_half_pixel, align_corners, asymmetric,
  tf_crop_and_resize, tf_half_pixel_for_nn
};
enum class ResizeNearest { round_prefer_floor, round_prefer_ceil, floor, ceil };

struct ResizeAxis {
  long long input = 1, output = 1;
  double scale = 1, roi_start = 0, roi_end = 1, cubic_a = -0.75;
  ResizeMode mode = ResizeMode::nearest;
  ResizeCoordinates coordinates = ResizeCoordinates::asymmetric;
  ResizeNearest nearest = ResizeNearest::floor;
  bool exclude_outside = false, antialias = false;
};

constexpr int resize_axes = 8;

// y[coordinates] = x[nearest of each].
struct ResizeNearestAll {
  const void* x = nullptr;
  void* y = nullptr;
  long long count = 0;
  int axes = 1;
  Divisor extents[resize_axes];
  long long strides[resize_axes] = {};
  ResizeAxis axis[resize_axes];
};

// One axis of an outer x input x inner view.
struct ResizePass {
  const void* x = nullptr;
  void* y = nullptr;
  long long count = 0;
  Divisor inner, output;
  ResizeAxis axis;
};

// Places of y that tf_crop_and_resize reads outside of x become `value`.
struct ResizeOutside {
  void* y = nullptr;
  long long count = 0;
  int axes = 1;
  double value = 0;
  Divisor extents[resize_axes];
  ResizeAxis axis[resize_axes];
};

}  // namespace rlx::params
