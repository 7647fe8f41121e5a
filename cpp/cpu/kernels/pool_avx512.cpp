// Pooling for AVX-512 vectors.
#include "cpu/kernels/pool_body.h"

namespace rlx::cpu {

const PoolTable pool_table_avx512 = pooling::table<64>();

}  // namespace rlx::cpu
