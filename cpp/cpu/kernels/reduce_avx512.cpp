// Loops of Reduce for AVX-512.
#include "cpu/kernels/reduce_table.h"

namespace rlx::cpu {

static_assert(this_isa == Isa::avx512);

template <>
ReduceLoops reduce_loops_for<Isa::avx512>(ReduceKind kind, DType type, bool select_last_index) {
  return pick_reduce_loops(kind, type, select_last_index);
}

}  // namespace rlx::cpu
