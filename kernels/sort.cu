// TopK: a bitonic sort of (key, index). Steps over short distances run in shared memory, a whole
// line's when it is short; those over long ones run one by one.
#include "kernels/include/index.h"
#include "kernels/include/order.h"
#include "kernels/params/sort.h"

namespace {

using S = RLX_T;
using Index = unsigned long long;
using Key = unsigned long long;

struct Line {
  Index x, y;  // of its first element
};

RLX_FN Line line_of(const rlx::params::Sort& p, Index line) {
  const Index outer = line / Index(p.inner), in = line % Index(p.inner);
  return {outer * Index(p.length) * Index(p.inner) + in, outer * Index(p.k) * Index(p.inner) + in};
}

RLX_FN Key key_of(const rlx::params::Sort& p, Index at) {
  const Key key = rlx::order_key(rlx::load(static_cast<const S*>(p.x) + at));
  return p.largest ? ~key : key;
}

// Indices decide between equal keys; those behind the line come last.
template <class I> RLX_FN bool before(Key a, I i, Key b, I j) { return a < b || (a == b && i < j); }

template <class I>
RLX_FN void exchange(Key* keys, I* places, Index low, Index high, bool ascending) {
  const bool swaps = before(keys[high], places[high], keys[low], places[low]) == ascending;
  if (!swaps) return;
  const Key key = keys[low];
  const I place = places[low];
  keys[low] = keys[high], places[low] = places[high];
  keys[high] = key, places[high] = place;
}

// The steps of runs `run` to `last` that stay within `padded` pairs, one thread for two of them;
// these begin at place `first` of their line.
template <class I>
RLX_FN void sort_shared(Key* keys, I* places, unsigned padded, Index first, Index run, Index last) {
  for (; run <= last; run *= 2) {
    unsigned distance = (run < padded ? unsigned(run) : padded) / 2;
    for (; distance > 0; distance /= 2) {
      __syncthreads();
      const unsigned low = 2 * distance * (threadIdx.x / distance) + threadIdx.x % distance;
      exchange(keys, places, low, low + distance, ((first + low) & run) == 0);
    }
  }
  __syncthreads();
}

RLX_FN void put(const rlx::params::Sort& p, const Line& line, Index j, Index from) {
  const Index to = line.y + j * Index(p.inner);
  static_cast<S*>(p.values)[to] = static_cast<const S*>(p.x)[line.x + from * Index(p.inner)];
  if (p.indices) p.indices[to] = (long long)(from);
}

}  // namespace

#if RLX_FORM == 0
extern "C" __global__ void __launch_bounds__(RLX_PADDED / 2) sort(const rlx::params::Sort p) {
  constexpr unsigned padded = RLX_PADDED;
  __shared__ Key keys[padded];
  __shared__ unsigned places[padded];
  if (rlx::block_rank() >= Index(p.outer) * Index(p.inner)) return;
  const Line line = line_of(p, rlx::block_rank());
  for (unsigned i = threadIdx.x; i < padded; i += padded / 2) {
    const bool inside = i < p.length;
    keys[i] = inside ? key_of(p, line.x + i * Index(p.inner)) : ~Key(0);
    places[i] = inside ? i : i + padded;
  }
  sort_shared(keys, places, padded, 0, 2, padded);
  for (unsigned j = threadIdx.x; j < p.k; j += padded / 2) put(p, line, j, places[j]);
}
#elif RLX_FORM == 1
extern "C" __global__ void sort(const rlx::params::Sort p) {
  const Index count = Index(p.outer) * Index(p.inner) * Index(p.padded);
  for (Index n = rlx::thread_rank(); n < count; n += rlx::thread_count()) {
    const Index i = n % Index(p.padded);
    const Line line = line_of(p, n / Index(p.padded));
    p.keys[n] = i < Index(p.length) ? key_of(p, line.x + i * Index(p.inner)) : ~Key(0);
    p.places[n] = (long long)(i);
  }
}
#elif RLX_FORM == 2
extern "C" __global__ void sort(const rlx::params::Sort p) {
  const Index half = Index(p.padded) / 2, count = Index(p.outer) * Index(p.inner) * half;
  const Index distance = Index(p.distance);
  for (Index n = rlx::thread_rank(); n < count; n += rlx::thread_count()) {
    const Index first = n / half * Index(p.padded), i = n % half;
    const Index low = 2 * distance * (i / distance) + i % distance;
    exchange(p.keys + first, p.places + first, low, low + distance, (low & Index(p.run)) == 0);
  }
}
#elif RLX_FORM == 3
extern "C" __global__ void sort(const rlx::params::Sort p) {
  const Index count = Index(p.outer) * Index(p.inner) * Index(p.k);
  for (Index n = rlx::thread_rank(); n < count; n += rlx::thread_count()) {
    const Index l = n / Index(p.k), j = n % Index(p.k);
    put(p, line_of(p, l), j, Index(p.places[l * Index(p.padded) + j]));
  }
}
#else
// A block for each RLX_PADDED pairs.
extern "C" __global__ void __launch_bounds__(RLX_PADDED / 2) sort(const rlx::params::Sort p) {
  constexpr unsigned padded = RLX_PADDED;
  __shared__ Key keys[padded];
  __shared__ long long places[padded];
  const Index first = rlx::block_rank() * padded;
  if (first >= Index(p.outer) * Index(p.inner) * Index(p.padded)) return;
  for (unsigned i = threadIdx.x; i < padded; i += padded / 2) {
    keys[i] = p.keys[first + i], places[i] = p.places[first + i];
  }
  sort_shared(keys, places, padded, first % Index(p.padded), Index(p.run), Index(p.last_run));
  for (unsigned i = threadIdx.x; i < padded; i += padded / 2) {
    p.keys[first + i] = keys[i], p.places[first + i] = places[i];
  }
}
#endif
