// Pooling windows with three spatial axes (missing ones first, of extent 1).
#pragma once

#include "kernels/params/divisor.h"

namespace rlx::params {

struct PoolAxis {
  int in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, pad_begin = 0, pad_end = 0;
  long long x_stride = 0, y_stride = 0;
};

struct Pool {
  const void* x = nullptr;
  void* y = nullptr;
  void* indices = nullptr;
  long long count = 0;
  Divisor extents[5];  // of y in the order of its memory
  PoolAxis axes[3];
  long long channels = 1, x_batch = 0, x_channel = 0, y_batch = 0, y_channel = 0;
  int p = 2, column_major = 0, counts_padding = 0;
};

}  // namespace rlx::params
