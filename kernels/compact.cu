// Compaction: conditions are counted block by block, the counts summed, the places listed.
#include "kernels/include/element.h"
#include "kernels/include/index.h"
#include "kernels/include/vector.h"
#include "kernels/include/warp.h"
#include "kernels/params/sort.h"

namespace {

using Index = unsigned long long;
using C = RLX_CONDITION;
constexpr int threads = 256, each = 4, block_items = threads * each;

RLX_FN bool holds(const rlx::params::Compact& p, Index i) {
  if (i >= Index(p.length)) return false;
  return rlx::convert<bool>(rlx::load(static_cast<const C*>(p.condition) + i));
}

// The sum over the block's earlier threads; `total` becomes that over all of them.
RLX_FN long long exclusive_sum(long long mine, long long* parts, long long& total) {
  constexpr int warps = threads / rlx::warp_size;
  long long sum = mine;
#pragma unroll
  for (int by = 1; by < rlx::warp_size; by *= 2) {
    const long long other = rlx::shuffle_up(sum, by);
    if (rlx::lane_id() >= by) sum += other;
  }
  __syncthreads();
  if (rlx::lane_id() == rlx::warp_size - 1) parts[rlx::warp_id()] = sum;
  __syncthreads();
  long long lead = 0;
  total = 0;
  for (int w = 0; w < warps; ++w) {
    if (w < rlx::warp_id()) lead += parts[w];
    total += parts[w];
  }
  return lead + sum - mine;
}

}  // namespace

#if RLX_FORM == 0 || RLX_FORM == 2
// 0: how many hold in each block; 2: their places, behind those of earlier blocks.
extern "C" __global__ void __launch_bounds__(threads) compact(const rlx::params::Compact p) {
  __shared__ long long parts[threads / rlx::warp_size];
  const Index block = rlx::block_rank();
  if (block >= Index(p.blocks)) return;
  const Index first = block * block_items + threadIdx.x * each;
  int mine = 0;
  for (int i = 0; i < each; ++i) mine += holds(p, first + i);
  long long total;
  long long at = exclusive_sum(mine, parts, total);
#if RLX_FORM == 0
  if (threadIdx.x == 0) p.sums[block] = total;
#else
  at += p.sums[block];
  for (int i = 0; i < each; ++i) {
    if (holds(p, first + i)) p.list[at++] = (long long)(first + i);
  }
#endif
}
#elif RLX_FORM == 1
// One block: each sum becomes that of all blocks before it.
extern "C" __global__ void __launch_bounds__(threads) compact(const rlx::params::Compact p) {
  __shared__ long long parts[threads / rlx::warp_size];
  long long before = 0;
  for (Index piece = 0; piece < Index(p.blocks); piece += threads) {
    const Index i = piece + threadIdx.x;
    const long long mine = i < Index(p.blocks) ? p.sums[i] : 0;
    long long total;
    const long long lead = exclusive_sum(mine, parts, total);
    if (i < Index(p.blocks)) p.sums[i] = before + lead;
    before += total;
  }
  if (threadIdx.x == 0) *p.count = before;
}
#elif RLX_FORM == 3
// NonZero: the coordinates of each listed element, an axis after the other.
extern "C" __global__ void compact(const rlx::params::Compact p) {
  const Index count = Index(*p.count);
  for (Index i = rlx::thread_rank(); i < count; i += rlx::thread_count()) {
    Index rest = Index(p.list[i]);
    for (int k = p.axes - 1; k >= 0; --k) {
      static_cast<long long*>(p.y)[Index(k) * count + i] =
          (long long)(rlx::split(rest, p.extents[k]));
    }
  }
}
#else
// Compress: the listed slices of x along the axis.
extern "C" __global__ void compact(const rlx::params::Compact p) {
  using Word = RLX_WORD;
  const Index kept = Index(*p.count), inner = Index(p.inner);
  const Index count = Index(p.outer) * kept * inner;
  for (Index i = rlx::thread_rank(); i < count; i += rlx::thread_count()) {
    const Index in = i % inner, slice = i / inner % kept, outer = i / inner / kept;
    static_cast<Word*>(p.y)[i] = static_cast<const Word*>(
        p.x)[(outer * Index(p.axis) + Index(p.list[slice])) * inner + in];
  }
}
#endif
