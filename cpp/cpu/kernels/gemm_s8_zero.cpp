// a (b - zb) = a b - zb (sum of a), modulo 2^32.
#include "cpu/kernels/gemm_s8_zero.h"

namespace rlx::cpu {

void s8_take_off_b_zero(const GemmS8Call& call, const void* b_zero, int64_t col, int64_t cols,
                        uint32_t sum, int32_t* c) {
  const int32_t shift = call.b_signed ? 0 : 128;
  if ((!b_zero && shift == 0) || sum == 0) return;
  if (!b_zero || call.b_zero_step == 0) {
    const int32_t zero = b_zero ? s8_zero(call.b_signed, b_zero, 0) : 0;
    const uint32_t all = uint32_t(zero - shift) * sum;
    for (int64_t j = 0; j < cols; ++j) c[j] = int32_t(uint32_t(c[j]) - all);
    return;
  }
  for (int64_t j = 0; j < cols; ++j) {
    const int32_t zero = s8_zero(call.b_signed, b_zero, col + j) - shift;
    c[j] = int32_t(uint32_t(c[j]) - uint32_t(zero) * sum);
  }
}

}  // namespace rlx::cpu
