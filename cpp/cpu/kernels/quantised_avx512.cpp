// Products by quantised weights for AVX-512 vectors.
#include "cpu/kernels/quantised_body.h"

namespace rlx::cpu {

const QuantisedTable quantised_table_avx512 = quantised::table<16>();

}  // namespace rlx::cpu
