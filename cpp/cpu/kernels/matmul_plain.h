// Matrix products of any type and strides by plain loops: slow, and simple enough to trust.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/small_vector.h"

namespace rlx::cpu {

struct MatrixStrides {
  int64_t row = 0, col = 0;
  Dims batch;  // one for each axis of PlainMatMul::batch; 0 repeats
};

struct PlainMatMul {
  int64_t m = 0, n = 0, k = 0;
  Dims batch;
  MatrixStrides a, b, c;  // a is [m, k], b [k, n]
  DType a_type = DType::none, b_type = DType::none, c_type = DType::none;
  DType a_zero_type = DType::none, b_zero_type = DType::none;  // none: 0
  bool a_zero_per_row = false, b_zero_per_col = false;
  double alpha = 1.0;  // floats only
};

// Sums in the type of c, but in float32 for float16 and bfloat16; integers wrap around.
void plain_matmul(const PlainMatMul& call, const void* a, const void* b, const void* a_zero,
                  const void* b_zero, void* c, int threads);

// Whether there is code for these types.
bool plain_matmul_takes(DType a, DType b, DType c);

}  // namespace rlx::cpu
