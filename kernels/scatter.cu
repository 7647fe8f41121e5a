// Scatters into a copy of data. With a reduction each target belongs to one thread, which takes
// its updates in index order: results are the same in every run. Where rows are many they are
// sorted by target first, so that there are as many threads as targets.
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

#if RLX_FORM != 0 && RLX_FORM != 5
// Where row `row` begins in y; -1 for a bad index.
RLX_FN long long target_of(const rlx::params::ScatterNd& p, Index row) {
  const auto* indices = static_cast<const RLX_INDICES*>(p.indices);
  long long to = 0;
  bool inside = true;
  for (int k = 0; k < p.depth; ++k) {
    const long long index =
        rlx::checked_index(indices, row * Index(p.depth) + Index(k), p.lengths[k], p.fault);
    inside = inside && index >= 0;
    to += index * p.strides[k];
  }
  return inside ? to : -1;
}
#endif

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
  const Index count = Index(p.rows) * Index(p.inner.value), step = rlx::thread_count();
  for (Index i = rlx::thread_rank(); i < count; i += step) {
    Index row = i;
    const Index column = rlx::split(row, p.inner);
    const long long to = target_of(p, row);
    if (to >= 0) put(static_cast<T*>(p.y) + to + column, static_cast<const T*>(p.updates)[i]);
  }
}
#elif RLX_FORM == 2
// ScatterND with a reduction: a thread for each column of the rows.
extern "C" __global__ void scatter(const rlx::params::ScatterNd p) {
  const Index step = rlx::thread_count();
  for (Index column = rlx::thread_rank(); column < Index(p.inner.value); column += step) {
    for (Index row = 0; row < Index(p.rows); ++row) {
      const long long to = target_of(p, row);
      const T update = static_cast<const T*>(p.updates)[row * Index(p.inner.value) + column];
      if (to >= 0) put(static_cast<T*>(p.y) + to + column, update);
    }
  }
}
#elif RLX_FORM == 3
// What rows are sorted by; bad ones and what pads the list come last.
extern "C" __global__ void scatter(const rlx::params::ScatterNd p) {
  for (Index i = rlx::thread_rank(); i < Index(p.padded); i += rlx::thread_count()) {
    const long long to = i < Index(p.rows) ? target_of(p, i) : -1;
    p.keys[i] = to < 0 ? ~0ull : (unsigned long long)(to);
    p.places[i] = (long long)(i);
  }
}
#elif RLX_FORM == 4
// A thread for each column of the first of the rows that have one target takes all of them.
extern "C" __global__ void scatter(const rlx::params::ScatterNd p) {
  const Index inner = Index(p.inner.value), count = Index(p.rows) * inner;
  for (Index n = rlx::thread_rank(); n < count; n += rlx::thread_count()) {
    Index i = n;
    const Index column = rlx::split(i, p.inner);
    const Index key = p.keys[i];
    if (key == ~0ull || (i > 0 && p.keys[i - 1] == key)) continue;
    T* const target = static_cast<T*>(p.y) + key + column;
    for (; i < Index(p.rows) && p.keys[i] == key; ++i) {
      put(target, static_cast<const T*>(p.updates)[Index(p.places[i]) * inner + column]);
    }
  }
}
#else
// ScatterElements without a reduction along few, long lines: targets do not coincide.
extern "C" __global__ void scatter(const rlx::params::Elements p) {
  const Index count = Index(p.count) * Index(p.line), step = rlx::thread_count();
  for (Index n = rlx::thread_rank(); n < count; n += step) {
    Index rest = n / Index(p.line);
    long long from = (long long)(n % Index(p.line)) * p.line_step, to = 0;
    for (int k = p.axes - 1; k >= 0; --k) {
      const long long c = (long long)(rlx::split(rest, p.extents[k]));
      from += c * p.line_strides[k];
      to += c * p.strides[k];
    }
    const long long index = rlx::checked_index(static_cast<const RLX_INDICES*>(p.indices),
                                               Index(from), p.length, p.fault);
    if (index < 0) continue;
    put(static_cast<T*>(p.y) + (to + index * p.strides[p.axis]),
        static_cast<const T*>(p.data)[from]);
  }
}
#endif
