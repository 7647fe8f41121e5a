// The bodies of Map for AVX-512.
#include "cpu/kernels/map_body.h"

namespace rlx::cpu {

const MapTable map_table_avx512 = {map_entries.data(), map_entries.size()};

}  // namespace rlx::cpu
