// Loops of Reduce for any CPU.
#include "cpu/kernels/reduce_table.h"

namespace rlx::cpu {

static_assert(this_isa == Isa::portable);

template <>
ReduceLoops reduce_loops_for<Isa::portable>(ReduceKind kind, DType type, bool select_last_index) {
  return pick_reduce_loops(kind, type, select_last_index);
}

}  // namespace rlx::cpu
