// Recurrent cells for AVX2 vectors.
#include "cpu/kernels/recurrent_body.h"

namespace rlx::cpu {

const CellKernels<float> cell_kernels_avx2 = cell::kernels<cell::Floats<32>::V, float>();

}  // namespace rlx::cpu
