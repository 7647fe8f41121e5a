// A convolution or its transpose with three spatial axes (missing ones first, of extent 1).
#pragma once

#include "kernels/params/region.h"

namespace rlx::params {

struct ConvAxis {
  long long in = 1, pad = 0, x_stride = 0;
  Divisor stride;
  int dilation = 1;
};

struct Conv {
  Region out;
  const void* x = nullptr;
  const void* w = nullptr;
  const void* x_zero = nullptr;
  const void* w_zero = nullptr;  // one value, or one for each output channel
  int w_zero_step = 0;
  int groups = 1;
  long long batch = 0;
  Divisor in_per_group, out_per_group;
  ConvAxis axes[3];
  long long x_batch = 0, x_channel = 0;
  Divisor out_pixels, out_plane, out_row;  // pixels of an image; of its last two axes; the last
  Divisor taps, tap_plane, tap_row;
  // Where an output is in the space of `out`: image, channel and pixel steps.
  long long y_batch = 0, y_channel = 0, y_pixel = 0;
};

struct ConvTiles : Conv {  // weights [channels out, k], dense
  float* partial = nullptr;  // [splits, outputs] where k is split
  long long k_part = 0;      // of k in each split; a multiple of what a block takes at once
  int splits = 1;
  int join = 0;  // adds the parts
};

}  // namespace rlx::params
