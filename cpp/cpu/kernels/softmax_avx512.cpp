// Loops of Softmax for AVX-512.
#include "cpu/kernels/softmax_body.h"

namespace rlx::cpu {

static_assert(this_isa == Isa::avx512);

template <>
SoftmaxLoops<float> softmax_loops_for<Isa::avx512, float>() {
  return make_softmax_loops<float>();
}

template <>
SoftmaxLoops<double> softmax_loops_for<Isa::avx512, double>() {
  return make_softmax_loops<double>();
}

}  // namespace rlx::cpu
