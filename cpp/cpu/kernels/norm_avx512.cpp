// Loops of Norm for AVX-512.
#include "cpu/kernels/norm_body.h"

namespace rlx::cpu {

static_assert(this_isa == Isa::avx512);

template <>
NormLoops<float> norm_loops_for<Isa::avx512, float>() {
  return make_norm_loops<float>();
}

template <>
NormLoops<double> norm_loops_for<Isa::avx512, double>() {
  return make_norm_loops<double>();
}

}  // namespace rlx::cpu
