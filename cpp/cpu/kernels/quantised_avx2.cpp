// Products by quantised weights for AVX2 vectors.
#include "cpu/kernels/quantised_body.h"

namespace rlx::cpu {

const QuantisedTable quantised_table_avx2 = quantised::table<8>();

}  // namespace rlx::cpu
