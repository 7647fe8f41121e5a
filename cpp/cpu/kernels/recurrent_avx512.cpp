// Recurrent cells for AVX-512 vectors.
#include "cpu/kernels/recurrent_body.h"

namespace rlx::cpu {

const CellKernels<float> cell_kernels_avx512 = cell::kernels<cell::Floats<64>::V, float>();

}  // namespace rlx::cpu
