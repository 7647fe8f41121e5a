// Loops over scalar functions of integers and bool, for AVX-512.
#include "cpu/kernels/region_body.h"

namespace rlx::cpu {

template <>
Loop integer_loop<Isa::avx512>(ScalarOp op, DType type, unsigned scalars) {
  static_assert(this_isa == Isa::avx512);
  return with_integer(type, Loop{}, [=](auto tag) {
    return pick<typename decltype(tag)::type>(op, scalars);
  });
}

}  // namespace rlx::cpu
