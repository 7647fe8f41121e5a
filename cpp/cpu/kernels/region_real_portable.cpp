// Loops over scalar functions of float, double and complex, for any CPU.
#include "cpu/kernels/region_body.h"

namespace rlx::cpu {

template <>
Loop real_loop<Isa::portable>(ScalarOp op, DType type, unsigned scalars) {
  static_assert(this_isa == Isa::portable);
  return with_real(type, Loop{}, [=](auto tag) {
    return pick<typename decltype(tag)::type>(op, scalars);
  });
}

}  // namespace rlx::cpu
