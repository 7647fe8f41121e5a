// Zero points of 8-bit products, whatever the layout of B.
#pragma once

#include <cstdint>

#include "cpu/kernels/gemm_s8.h"
#include "cpu/kernels/zero_point.h"

namespace rlx::cpu {

// Element i of zero points of a signed or unsigned operand.
inline int32_t s8_zero(bool is_signed, const void* zeros, int64_t i) {
  return zero_point(is_signed ? DType::int8 : DType::uint8, zeros, i);
}

// Whether what is left of B's zero points, once B is packed less `shift`, changes a product.
// b_zero is null where there are none.
bool s8_b_zero_matters(const GemmS8Call& call, const void* b_zero, int32_t shift);

// Takes that off columns [col, col + cols) of a row of products, `c`; `sum` is that of A's row
// less its own zero point.
void s8_take_off_b_zero(const GemmS8Call& call, const void* b_zero, int32_t shift, int64_t col,
                        int64_t cols, uint32_t sum, int32_t* c);

}  // namespace rlx::cpu
