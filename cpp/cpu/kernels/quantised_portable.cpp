// Products by quantised weights for vectors of SSE2.
#include "cpu/kernels/quantised_body.h"

namespace rlx::cpu {

const QuantisedTable quantised_table_portable = quantised::table<4>();

}  // namespace rlx::cpu
