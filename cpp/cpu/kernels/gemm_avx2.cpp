// Inner kernels of matrix products for AVX2 with FMA and F16C.
#include "cpu/kernels/gemm_isa.h"

namespace rlx::cpu {

// 6 x 2 vectors of sums leave 4 of the 16 registers for operands.
const GemmTable gemm_table_avx2 = {
    tile::kernels<float, 32, 6, 2>(),    tile::kernels<double, 32, 6, 2>(),
    tile::kernels<uint32_t, 32, 4, 2>(), tile::kernels<uint64_t, 32, 4, 1>(),
    tile::float_kernels<32>(),
};

}  // namespace rlx::cpu
