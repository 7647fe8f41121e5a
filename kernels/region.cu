// Runs a generated Region over its whole space, `vector` neighbours at a time.
#include "generated/region.h"

using rlx::region::Index;

extern "C" __global__ void region(const rlx::params::Region p) {
  constexpr int vector = RLX_VECTOR;
  const Index groups = Index(p.count) / vector;
  const Index step = Index(rlx::thread_count());
  for (Index i = Index(rlx::thread_rank()); i < groups; i += step) {
    rlx::region::run<vector>(p, i * vector, nullptr);
  }
}
