// Reductions: rows by a warp or a block each, columns side by side, splits merged afterwards.
#include "generated/source.h"
#include "kernels/include/reduce_kinds.h"
#include "kernels/include/warp.h"
#include "kernels/params/reduce.h"

namespace {

using rlx::source::Index;
using Value = rlx::source::T0;
// A bool has extremes only; it is compared as a number.
template <class T> struct Number { using type = T; };
template <> struct Number<bool> { using type = unsigned char; };
using T = typename Number<Value>::type;
using Reducer = typename rlx::ReducerOf<T, rlx::ReduceKind::RLX_KIND, RLX_LAST>::type;
using State = typename Reducer::State;
using Out = RLX_OUT;

RLX_FN Index place(Index i, const rlx::params::Divisor* extents, const long long* strides) {
  Index at = 0;
#pragma unroll
  for (int k = rlx::params::reduce_axes - 1; k > 0; --k) {
    if (extents[k].value != 1) at += rlx::split(i, extents[k]) * Index(strides[k]);
  }
  return at + i * Index(strides[0]);
}

RLX_FN void put(const rlx::params::Reduce& p, Index kept, Index split, State state) {
  if (p.splits > 1) {
    static_cast<State*>(p.parts)[kept * Index(p.splits) + split] = state;
    return;
  }
  const auto result = Reducer::finish(state, p.reduced);
  static_cast<Out*>(p.y)[kept] = rlx::Element<Out>::store(rlx::ComputeOf<Out>(result));
}

RLX_FN Index smaller(Index a, Index b) { return a < b ? a : b; }

}  // namespace

#if RLX_FORM == 0
// RLX_THREADS threads share a row; each takes RLX_VECTOR neighbours at a time.
extern "C" __global__ void __launch_bounds__(RLX_BLOCK) reduce(const rlx::params::Reduce p) {
  constexpr int threads = RLX_THREADS, vector = RLX_VECTOR;
  __shared__ State parts[RLX_BLOCK / rlx::warp_size];
  const Index task = Index(rlx::block_rank()) * (RLX_BLOCK / threads) + threadIdx.x / threads;
  const Index tasks = Index(p.kept) * Index(p.splits);
  const bool inside = task < tasks;
  const Index kept = inside ? task / Index(p.splits) : 0;
  const Index split = inside ? task - kept * Index(p.splits) : 0;
  const Index base = place(kept, p.kept_extents, p.kept_strides);
  const Index begin = split * Index(p.per_split);
  const Index end = inside ? smaller(begin + Index(p.per_split), Index(p.reduced)) : begin;
  State state = Reducer::start();
  for (Index r = begin + threadIdx.x % threads * vector; r < end; r += threads * vector) {
    Value x[vector];
    const Index at = base + place(r, p.reduced_extents, p.reduced_strides);
    rlx::source::values<vector>(p.source, at, nullptr, x);
#pragma unroll
    for (int i = 0; i < vector; ++i) Reducer::take(state, T(x[i]), (long long)(r) + i);
  }
  state = rlx::group_reduce<threads>(state, parts, Reducer::merge);
  if (inside && threadIdx.x % threads == 0) put(p, kept, split, state);
}
#elif RLX_FORM == 1
// 32 neighbouring results along x; the y threads of a block share the reduced axis.
extern "C" __global__ void __launch_bounds__(256) reduce(const rlx::params::Reduce p) {
  constexpr int width = 32, height = 8;
  __shared__ State parts[height][width];
  const Index blocks = (Index(p.kept) + width - 1) / width;
  const Index task = Index(rlx::block_rank());
  const Index split = task / blocks;
  if (split >= Index(p.splits)) return;
  const Index kept = (task - split * blocks) * width + threadIdx.x;
  State state = Reducer::start();
  if (kept < Index(p.kept)) {
    const Index base = place(kept, p.kept_extents, p.kept_strides);
    const Index begin = split * Index(p.per_split);
    const Index end = smaller(begin + Index(p.per_split), Index(p.reduced));
    for (Index r = begin + threadIdx.y; r < end; r += height) {
      Value x[1];
      rlx::source::values<1>(p.source, base + place(r, p.reduced_extents, p.reduced_strides),
                             nullptr, x);
      Reducer::take(state, T(x[0]), (long long)(r));
    }
  }
  parts[threadIdx.y][threadIdx.x] = state;
  __syncthreads();
  if (threadIdx.y != 0 || kept >= Index(p.kept)) return;
  for (int k = 1; k < height; ++k) state = Reducer::merge(state, parts[k][threadIdx.x]);
  put(p, kept, split, state);
}
#else
// The states of all splits of a result.
extern "C" __global__ void reduce(const rlx::params::Reduce p) {
  const Index step = Index(rlx::thread_count());
  for (Index kept = Index(rlx::thread_rank()); kept < Index(p.kept); kept += step) {
    const State* parts = static_cast<const State*>(p.parts) + kept * Index(p.splits);
    State state = parts[0];
    for (Index k = 1; k < Index(p.splits); ++k) state = Reducer::merge(state, parts[k]);
    const auto result = Reducer::finish(state, p.reduced);
    static_cast<Out*>(p.y)[kept] = rlx::Element<Out>::store(rlx::ComputeOf<Out>(result));
  }
}
#endif
