// A product by tiles or by rows: dense or transposed operands, partial sums where k is split.
#pragma once

#include "kernels/params/region.h"

namespace rlx::params {

// Product b of the batch: element (m, k) of A at a + m * a_row + k * a_column, likewise B (k, n).
struct TileProduct {
  Region out;
  const void* a = nullptr;
  const void* b = nullptr;
  float* partial = nullptr;  // [splits, batches, m, n] where k is split
  long long m = 0, n = 0, k = 0;
  long long a_row = 0, a_column = 0, b_row = 0, b_column = 0;
  long long batches = 1;
  Divisor batch[3];
  long long a_batch[3] = {}, b_batch[3] = {};
  long long k_part = 0;  // of k in each split; a multiple of what a block takes at once
  int splits = 1;
  float alpha = 1;
};

}  // namespace rlx::params
