// Scatters into a copy of data. With a reduction each target belongs to one thread, which takes
// its updates in index order: results are the same in every run.
#include "kernels/include/element.h"
#include "kernels/include/index.h"
#include "kernels/include/indices.h"
#include "kernels/include/scalar_ops.h"
#include "kernels/params/gather.h"

using T = RLX_T;
using Index = unsigned long long;

namespace {

RLX_FN void put(T* target, T update) {
#if RLX_REDUCES
  rlx::store(target, rlx::scalar::RLX_REDUCTION(rlx::load(target), rlx::load(&update)));
#else
  *target = update;
#endif
}

}  // namespace

#if RLX_FORM == 0
// A thread for each line of indices along the axis: only within one do targets coincide.
extern "C" __global__ void scatter(const rlx::params::Elements p) {
  const auto* indices = static_cast<const RLX_INDICES*>(p.indices);
  const auto* updates = static_cast<const T*>(p.data);
  const Index step = rlx::thread_count();
  for (Index line = rlx::thread_rank(); line < Index(p.count); line += step) {
    Index rest = line;
    long long from = 0, to = 0;
    for (int k = p.axes - 1; k >= 0; --k) {
      const long long c = (long long)(rlx::split(rest, p.extents[k]));
      from += c * p.line_strides[k];
      to += c * p.strides[k];
    }
    for (long long i = 0; i < p.line; ++i) {
      const Index at = Index(from + i * p.line_step);
      const long long index = rlx::checked_index(indices, at, p.length, p.fault);
      if (index >= 0) put(static_cast<T*>(p.y) + (to + index * p.strides[p.axis]), updates[at]);
    }
  }
}
#elif RLX_FORM == 1
// ScatterND without a reduction: targets do not coincide.
extern "C" __global__ void scatter(const rlx::params::ScatterNd p) {
  const auto* indices = static_cast<const RLX_INDICES*>(p.indices);
  const Index count = Index(p.rows) * Index(p.inner.value), step = rlx::thread_count();
  for (Index i = rlx::thread_rank(); i < count; i += step) {
    Index row = i;
    long long to = (long long)(rlx::split(row, p.inner));
    bool inside = true;
    for (int k = 0; k < p.depth; ++k) {
      const long long index =
          rlx::checked_index(indices, row * Index(p.depth) + Index(k), p.lengths[k], p.fault);
      inside = inside && index >= 0;
      to += index * p.strides[k];
    }
    if (inside) put(static_cast<T*>(p.y) + to, static_cast<const T*>(p.updates)[i]);
  }
}
#else
// ScatterND with a reduction: a thread for each column of the rows.
extern "C" __global__ void scatter(const rlx::params::ScatterNd p) {
  const auto* indices = static_cast<const RLX_INDICES*>(p.indices);
  const Index step = rlx::thread_count();
  for (Index column = rlx::thread_rank(); column < Index(p.inner.value); column += step) {
    for (Index row = 0; row < Index(p.rows); ++row) {
      long long to = (long long)(column);
      bool inside = true;
      for (int k = 0; k < p.depth; ++k) {
        const long long index =
            rlx::checked_index(indices, row * Index(p.depth) + Index(k), p.lengths[k], p.fault);
        inside = inside && index >= 0;
        to += index * p.strides[k];
      }
      const T update = static_cast<const T*>(p.updates)[row * Index(p.inner.value) + column];
      if (inside) put(static_cast<T*>(p.y) + to, update);
    }
  }
}
#endif
