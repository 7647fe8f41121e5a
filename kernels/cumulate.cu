// Running sums and products: a block scans a row piece by piece, or a thread walks a column.
#include "generated/source.h"
#include "kernels/include/reduce_kinds.h"
#include "kernels/include/warp.h"
#include "kernels/params/cumulate.h"

namespace {

using T = rlx::source::T0;
using Index = rlx::source::Index;
using Out = RLX_OUT;
using Sum = rlx::SumReducer<T, RLX_PRODUCT ? rlx::ReduceKind::prod : rlx::ReduceKind::sum>;
using State = typename Sum::State;

RLX_FN T value(const rlx::params::Cumulate& p, Index at) {
  T x[1];
  rlx::source::values<1>(p.source, at, nullptr, x);
  return x[0];
}
RLX_FN void put(const rlx::params::Cumulate& p, Index at, State s) {
  static_cast<Out*>(p.y)[at] = rlx::Element<Out>::store(rlx::ComputeOf<Out>(T(s)));
}
RLX_FN Index step_at(const rlx::params::Cumulate& p, Index i) {
  return RLX_REVERSE ? Index(p.length) - 1 - i : i;
}

}  // namespace

#if RLX_FORM == 0
extern "C" __global__ void __launch_bounds__(RLX_BLOCK) cumulate(const rlx::params::Cumulate p) {
  constexpr int warps = RLX_BLOCK / rlx::warp_size;
  __shared__ State parts[warps];
  if (rlx::block_rank() >= (unsigned long long)(p.outer)) return;
  const Index first = Index(rlx::block_rank()) * Index(p.length), length = Index(p.length);
  State before = Sum::start();  // of all earlier pieces
  for (Index piece = 0; piece < length; piece += RLX_BLOCK) {
    const Index i = piece + threadIdx.x;
    const bool inside = i < length;
    const State mine = inside ? Sum::of(value(p, first + step_at(p, i))) : Sum::start();
    State sum = mine;
#pragma unroll
    for (int by = 1; by < rlx::warp_size; by *= 2) {
      const State other = rlx::shuffle_up(sum, by);
      if (rlx::lane_id() >= by) sum = Sum::merge(other, sum);
    }
    State exclusive = rlx::shuffle_up(sum, 1);
    if (rlx::lane_id() == 0) exclusive = Sum::start();
    __syncthreads();
    if (rlx::lane_id() == rlx::warp_size - 1) parts[rlx::warp_id()] = sum;
    __syncthreads();
    State lead = before;
    for (int w = 0; w < warps; ++w) {
      if (w < rlx::warp_id()) lead = Sum::merge(lead, parts[w]);
      before = Sum::merge(before, parts[w]);
    }
    if (inside) put(p, first + step_at(p, i), Sum::merge(lead, RLX_EXCLUSIVE ? exclusive : sum));
  }
}
#else
extern "C" __global__ void cumulate(const rlx::params::Cumulate p) {
  const Index inner = Index(p.inner), length = Index(p.length), lines = Index(p.outer) * inner;
  for (Index c = Index(rlx::thread_rank()); c < lines; c += Index(rlx::thread_count())) {
    const Index first = c / inner * length * inner + c % inner;
    State sum = Sum::start();
    for (Index i = 0; i < length; ++i) {
      const Index at = first + step_at(p, i) * inner;
      const State next = Sum::merge(sum, Sum::of(value(p, at)));
      put(p, at, RLX_EXCLUSIVE ? sum : next);
      sum = next;
    }
  }
}
#endif
