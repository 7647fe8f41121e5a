// The bodies of Map for AVX2.
#include "cpu/kernels/map_body.h"

namespace rlx::cpu {

const MapTable map_table_avx2 = {map_entries.data(), map_entries.size()};

}  // namespace rlx::cpu
