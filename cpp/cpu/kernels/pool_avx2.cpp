// Pooling for AVX2 vectors.
#include "cpu/kernels/pool_body.h"

namespace rlx::cpu {

const PoolTable pool_table_avx2 = pooling::table<32>();

}  // namespace rlx::cpu
