// Inner kernels of matrix products for AVX-512.
#include "cpu/kernels/gemm_isa.h"

namespace rlx::cpu {

// 12 x 2 vectors of sums of 32 registers.
const GemmTable gemm_table_avx512 = {
    tile::kernels<float, 64, 12, 2>(),    tile::kernels<double, 64, 6, 2>(),
    tile::kernels<uint32_t, 64, 4, 2>(), tile::kernels<uint64_t, 64, 4, 1>(),
    tile::float_kernels<64>(),
};

}  // namespace rlx::cpu
