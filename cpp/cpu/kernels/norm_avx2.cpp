// Loops of Norm for AVX2.
#include "cpu/kernels/norm_body.h"

namespace rlx::cpu {

static_assert(this_isa == Isa::avx2);

template <>
NormLoops<float> norm_loops_for<Isa::avx2, float>() {
  return make_norm_loops<float>();
}

template <>
NormLoops<double> norm_loops_for<Isa::avx2, double>() {
  return make_norm_loops<double>();
}

}  // namespace rlx::cpu
