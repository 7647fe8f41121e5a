// A convolution or its transpose with three spatial axes (missing ones first, of extent 1).
#pragma once

#include "kernels/params/region.h"

namespace rlx::params {

struct ConvAxis {
  int in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, pad = 0;
  long long x_stride = 0;
};

struct Conv {
  Region out;
  const void* x = nullptr;
  const void* w = nullptr;
  const void* x_zero = nullptr;
  const void* w_zero = nullptr;  // one value, or one for each output channel
  int w_zero_step = 0;
  int groups = 1;
  long long batch = 0, in_per_group = 0;
  Divisor out_per_group;
  ConvAxis axes[3];
  long long x_batch = 0, x_channel = 0;
  Divisor out_pixels, out_plane, out_row;  // pixels of an image; of its last two axes; the last
  Divisor taps, tap_plane, tap_row;
  // Where an output is in the space of `out`: image, channel and pixel steps.
  long long y_batch = 0, y_channel = 0, y_pixel = 0;
};

}  // namespace rlx::params
