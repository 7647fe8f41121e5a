// a (b - zb) = a b - zb (sum of a), modulo 2^32.
#include "cpu/kernels/gemm_s8_zero.h"

namespace rlx::cpu {
namespace {

bool is_each(const GemmS8Call& call, const void* b_zero) { return b_zero && call.b_zero_step != 0; }

int32_t only_zero(const GemmS8Call& call, const void* b_zero) {
  return b_zero ? s8_zero(call.b_signed, b_zero, 0) : 0;
}

}  // namespace

bool s8_b_zero_matters(const GemmS8Call& call, const void* b_zero, int32_t shift) {
  return is_each(call, b_zero) || only_zero(call, b_zero) != shift;
}

void s8_take_off_b_zero(const GemmS8Call& call, const void* b_zero, int32_t shift, int64_t col,
                        int64_t cols, uint32_t sum, int32_t* c) {
  if (sum == 0 || !s8_b_zero_matters(call, b_zero, shift)) return;
  if (!is_each(call, b_zero)) {
    const uint32_t all = uint32_t(only_zero(call, b_zero) - shift) * sum;
    for (int64_t j = 0; j < cols; ++j) c[j] = int32_t(uint32_t(c[j]) - all);
    return;
  }
  for (int64_t j = 0; j < cols; ++j) {
    const int32_t zero = s8_zero(call.b_signed, b_zero, col + j) - shift;
    c[j] = int32_t(uint32_t(c[j]) - uint32_t(zero) * sum);
  }
}

}  // namespace rlx::cpu
