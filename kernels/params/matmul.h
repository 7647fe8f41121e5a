// A batched matrix product with zero points, and the Region that its results pass through.
#pragma once

#include "kernels/params/region.h"

namespace rlx::params {

// Product b of the batch: element (m, k) of A at a + m * a_row + k * a_column, likewise B (k, n).
struct MatMul {
  Region out;
  const void* a = nullptr;
  const void* b = nullptr;
  const void* a_zero = nullptr;  // one value, or one for each row of A
  const void* b_zero = nullptr;  // one value, or one for each column of B
  long long m = 0, n = 0, k = 0;
  long long a_row = 0, a_column = 0, b_row = 0, b_column = 0;
  long long a_zero_row = 0, b_zero_column = 0;
  long long batches = 1;
  Divisor batch[3];
  long long a_batch[3] = {}, b_batch[3] = {};
  double alpha = 1;
};

}  // namespace rlx::params
