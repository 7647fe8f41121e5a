// The bodies of Map for any machine.
#include "cpu/kernels/map_body.h"

namespace rlx::cpu {

const MapTable map_table_portable = {map_entries.data(), map_entries.size()};

}  // namespace rlx::cpu
