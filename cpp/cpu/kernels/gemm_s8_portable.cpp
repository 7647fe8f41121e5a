// Inner kernels of 8-bit products for any machine.
#include "cpu/kernels/gemm_s8_tile.h"

namespace rlx::cpu {
namespace {

struct Portable {
  static constexpr int lanes = 4;
  typedef int32_t Vec __attribute__((vector_size(16)));
  struct Wide {
    Vec first, second;  // of each pair
  };
  static Wide widen(const int8_t* b) {
    return {Vec{b[0], b[2], b[4], b[6]}, Vec{b[1], b[3], b[5], b[7]}};
  }
  static Wide pair(const int16_t* a) { return {Vec{} + a[0], Vec{} + a[1]}; }
  static Vec dot(Vec sum, const Wide& a, const Wide& b) {
    return sum + (a.first * b.first + a.second * b.second);
  }
};

}  // namespace

const S8Kernels s8_kernels_portable = s8::kernels<Portable, 4, 2>();

}  // namespace rlx::cpu
