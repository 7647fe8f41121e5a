// Loops over scalar functions of float, double and complex, for AVX2.
#include "cpu/kernels/region_body.h"

namespace rlx::cpu {

template <>
Loop real_loop<Isa::avx2>(ScalarOp op, DType type, unsigned scalars) {
  static_assert(this_isa == Isa::avx2);
  return with_real(type, Loop{}, [=](auto tag) {
    return pick<typename decltype(tag)::type>(op, scalars);
  });
}

}  // namespace rlx::cpu
