// Loops of Softmax for any CPU.
#include "cpu/kernels/softmax_body.h"

namespace rlx::cpu {

static_assert(this_isa == Isa::portable);

template <>
SoftmaxLoops<float> softmax_loops_for<Isa::portable, float>() {
  return make_softmax_loops<float>();
}

template <>
SoftmaxLoops<double> softmax_loops_for<Isa::portable, double>() {
  return make_softmax_loops<double>();
}

}  // namespace rlx::cpu
