// Loops of Norm for any CPU.
#include "cpu/kernels/norm_body.h"

namespace rlx::cpu {

static_assert(this_isa == Isa::portable);

template <>
NormLoops<float> norm_loops_for<Isa::portable, float>() {
  return make_norm_loops<float>();
}

template <>
NormLoops<double> norm_loops_for<Isa::portable, double>() {
  return make_norm_loops<double>();
}

}  // namespace rlx::cpu
