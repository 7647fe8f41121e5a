// Loops of Softmax for AVX2.
#include "cpu/kernels/softmax_body.h"

namespace rlx::cpu {

static_assert(this_isa == Isa::avx2);

template <>
SoftmaxLoops<float> softmax_loops_for<Isa::avx2, float>() {
  return make_softmax_loops<float>();
}

template <>
SoftmaxLoops<double> softmax_loops_for<Isa::avx2, double>() {
  return make_softmax_loops<double>();
}

}  // namespace rlx::cpu
