// Recurrent cells for baseline vectors.
#include "cpu/kernels/recurrent_body.h"

namespace rlx::cpu {

const CellKernels<float> cell_kernels_portable = cell::kernels<cell::Floats<16>::V, float>();
const CellKernels<double> cell_kernels_double = cell::kernels<double, double>();

}  // namespace rlx::cpu
