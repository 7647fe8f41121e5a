// Pooling for baseline vectors.
#include "cpu/kernels/pool_body.h"

namespace rlx::cpu {

const PoolTable pool_table_portable = pooling::table<16>();

}  // namespace rlx::cpu
