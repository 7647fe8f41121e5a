// Loops over scalar functions of integers and bool, for any CPU.
#include "cpu/kernels/region_body.h"

namespace rlx::cpu {

template <>
Loop integer_loop<Isa::portable>(ScalarOp op, DType type, unsigned scalars) {
  static_assert(this_isa == Isa::portable);
  return with_integer(type, Loop{}, [=](auto tag) {
    return pick<typename decltype(tag)::type>(op, scalars);
  });
}

}  // namespace rlx::cpu
