// Inner kernels of matrix products for any machine (128-bit vectors).
#include "cpu/kernels/gemm_isa.h"

namespace rlx::cpu {

const GemmTable gemm_table_portable = {
    tile::kernels<float, 16, 6, 2>(),    tile::kernels<double, 16, 6, 2>(),
    tile::kernels<uint32_t, 16, 4, 2>(), tile::kernels<uint64_t, 16, 4, 1>(),
    tile::float_kernels<16>(),
};

}  // namespace rlx::cpu
