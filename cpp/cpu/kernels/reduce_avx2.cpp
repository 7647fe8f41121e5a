// Loops of Reduce for AVX2.
#include "cpu/kernels/reduce_table.h"

namespace rlx::cpu {

static_assert(this_isa == Isa::avx2);

template <>
ReduceLoops reduce_loops_for<Isa::avx2>(ReduceKind kind, DType type, bool select_last_index) {
  return pick_reduce_loops(kind, type, select_last_index);
}

}  // namespace rlx::cpu
