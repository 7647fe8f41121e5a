// Scatters into a copy of data. With a reduction each target belongs to one thread, which takes
// its updates in index order: results are the same in every run. Where lines are long and few
// their rows are sorted by target first, so that there are as many threads as targets.
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

struct Line {
  Index row;    // its first in indices and updates
  long long y;  // where it begins there
};

RLX_FN Line line_of(const rlx::params::Scatter& p, Index line) {
  Line found = {0, 0};
  for (int k = 0; k < p.axes; ++k) {
    const Index c = rlx::split(line, p.extents[k]);
    found.row += c * Index(p.line_rows[k]);
    found.y += (long long)(c) * p.line_strides[k];
  }
  return found;
}

struct Place {
  Index line, row;  // in it
};

// Rows side by side in memory belong to neighbouring threads, be they of one line or of several.
RLX_FN Place place_of(const rlx::params::Scatter& p, Index n) {
  if (p.lines == 1) return {0, n};
  if (p.row_step > 1) return {n % Index(p.lines), n / Index(p.lines)};
  return {n / Index(p.rows), n % Index(p.rows)};
}

// Where row `row` goes from where its line begins in y; -1 for a bad index.
RLX_FN long long target_of(const rlx::params::Scatter& p, Index row) {
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

}  // namespace

#if RLX_FORM == 0
// A thread for each column of each line takes all rows: only there do targets coincide.
extern "C" __global__ void scatter(const rlx::params::Scatter p) {
  const Index inner = Index(p.inner.value), count = Index(p.lines) * inner;
  for (Index n = rlx::thread_rank(); n < count; n += rlx::thread_count()) {
    Index l = n;
    const Index column = rlx::split(l, p.inner);
    const Line line = line_of(p, l);
    for (Index i = 0; i < Index(p.rows); ++i) {
      const Index row = line.row + i * Index(p.row_step);
      const long long to = target_of(p, row);
      const T update = static_cast<const T*>(p.updates)[row * inner + column];
      if (to >= 0) put(static_cast<T*>(p.y) + line.y + to + column, update);
    }
  }
}
#elif RLX_FORM == 1
// Without a reduction targets do not coincide: a thread for each update.
extern "C" __global__ void scatter(const rlx::params::Scatter p) {
  const Index inner = Index(p.inner.value), count = Index(p.lines) * Index(p.rows) * inner;
  for (Index n = rlx::thread_rank(); n < count; n += rlx::thread_count()) {
    Index rest = n;
    const Index column = rlx::split(rest, p.inner);
    const Place place = place_of(p, rest);
    const Line line = line_of(p, place.line);
    const Index row = line.row + place.row * Index(p.row_step);
    const long long to = target_of(p, row);
    if (to < 0) continue;
    put(static_cast<T*>(p.y) + line.y + to + column,
        static_cast<const T*>(p.updates)[row * inner + column]);
  }
}
#elif RLX_FORM == 2
// What rows are sorted by; bad ones and what pads the list come last.
extern "C" __global__ void scatter(const rlx::params::Scatter p) {
  const Index padded = Index(p.padded), count = Index(p.lines) * padded;
  for (Index n = rlx::thread_rank(); n < count; n += rlx::thread_count()) {
    const Index i = n % padded;
    long long to = -1;
    if (i < Index(p.rows)) {
      const Line line = line_of(p, Index(p.first) + n / padded);
      to = target_of(p, line.row + i * Index(p.row_step));
    }
    p.keys[n] = to < 0 ? ~0ull : (unsigned long long)(to);
    p.places[n] = (long long)(i);
  }
}
#else
// A thread for each column of the first of a line's rows that have one target takes all of them,
// some at a time, so that it waits for memory less often than once for each.
extern "C" __global__ void scatter(const rlx::params::Scatter p) {
  constexpr int at_once = 8;
  const Index inner = Index(p.inner.value), count = Index(p.lines) * Index(p.rows) * inner;
  for (Index n = rlx::thread_rank(); n < count; n += rlx::thread_count()) {
    Index rest = n;
    const Index column = rlx::split(rest, p.inner);
    const Place place = place_of(p, rest);
    const auto* keys = p.keys + place.line * Index(p.padded);
    const auto* places = p.places + place.line * Index(p.padded);
    Index i = place.row;
    const Index key = keys[i];
    if (key == ~0ull || (i > 0 && keys[i - 1] == key)) continue;
    const Line line = line_of(p, Index(p.first) + place.line);
    const T* const updates = static_cast<const T*>(p.updates) + line.row * inner + column;
    T* const target = static_cast<T*>(p.y) + line.y + key + column;
    T value = *target;
    const Index own = Index(places[i]), last = Index(p.padded) - 1;
    for (bool more = true; more; i += at_once) {
      bool same[at_once];
      T update[at_once];
#pragma unroll
      for (int k = 0; k < at_once; ++k) {
        const Index at = i + Index(k) < last ? i + Index(k) : last;
        same[k] = i + Index(k) <= last && keys[at] == key;
        const Index row = same[k] ? Index(places[at]) : own;  // no branch: loads overlap
        update[k] = updates[row * Index(p.row_step) * inner];
      }
#pragma unroll
      for (int k = 0; k < at_once; ++k) {
        if (same[k]) put(&value, update[k]);
      }
      more = same[at_once - 1];
    }
    *target = value;
  }
}
#endif
