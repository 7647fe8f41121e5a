// Gather along an axis, by tuples (GatherND) and element by element; elements by size alone.
#include "kernels/include/index.h"
#include "kernels/include/indices.h"
#include "kernels/include/vector.h"
#include "kernels/params/gather.h"

using Word = RLX_WORD;
using Index = RLX_INDEX;

#if RLX_FORM == 0
extern "C" __global__ void gather(const rlx::params::Gather p) {
  const auto* indices = static_cast<const RLX_INDICES*>(p.indices);
  const Index count = Index(p.rows) * Index(p.inner.value), step = Index(rlx::thread_count());
  for (Index i = Index(rlx::thread_rank()); i < count; i += step) {
    Index row = i;
    const Index column = rlx::split(row, p.inner);
    const Index group = rlx::divide(row, p.per_group);
    const Index place = row - group * Index(p.per_group.value);
    long long from = (long long)(group) * p.group_stride + (long long)(column);
    bool inside = true;
    for (int k = 0; k < p.depth; ++k) {
      const Index at = (p.indices_by_place ? place : row) * Index(p.depth) + Index(k);
      const long long index = rlx::checked_index(indices, at, p.lengths[k], p.fault);
      inside = inside && index >= 0;
      from += index * p.strides[k];
    }
    Word value = {};
    if (inside) value = static_cast<const Word*>(p.data)[from];
    static_cast<Word*>(p.y)[i] = value;
  }
}
#else
extern "C" __global__ void gather(const rlx::params::Elements p) {
  const auto* indices = static_cast<const RLX_INDICES*>(p.indices);
  const Index step = Index(rlx::thread_count());
  for (Index i = Index(rlx::thread_rank()); i < Index(p.count); i += step) {
    const long long index = rlx::checked_index(indices, i, p.length, p.fault);
    Index rest = i;
    long long from = 0;
    for (int k = p.axes - 1; k >= 0; --k) {
      const Index c = rlx::split(rest, p.extents[k]);
      from += (k == p.axis ? index : (long long)(c)) * p.strides[k];
    }
    Word value = {};
    if (index >= 0) value = static_cast<const Word*>(p.data)[from];
    static_cast<Word*>(p.y)[i] = value;
  }
}
#endif
