// Sorts rows by the group that each names, without the host: where each group begins, and its rows
// in their order. A block for each group, so that nothing depends on who comes first.
#include "kernels/include/warp.h"
#include "kernels/params/matmul_dequant.h"

extern "C" __global__ void __launch_bounds__(256) group_rows(const rlx::params::GroupRows p) {
  constexpr int threads = 256, warps = threads / rlx::warp_size;
  __shared__ int parts[warps], counts[warps];
  const long long group = (long long)(rlx::block_rank());
  if (group >= p.group_count) return;
  const auto* groups = static_cast<const RLX_I*>(p.groups);
  int below = 0;
  for (long long i = threadIdx.x; i < p.rows; i += threads) {
    const long long g = (long long)(groups[i]);
    if (g >= 0 && g < group) ++below;
    if (group == 0 && (g < 0 || g >= p.group_count)) atomicOr(p.fault, 1ull);
  }
  int start = rlx::group_reduce<threads>(below, parts, rlx::add_values<int>);
  if (threadIdx.x == 0) p.starts[group] = start;
  for (long long base = 0; base < p.rows; base += threads) {
    const long long i = base + threadIdx.x;
    const bool mine = i < p.rows && (long long)(groups[i]) == group;
    const unsigned votes = __ballot_sync(rlx::all_lanes, mine);
    if (rlx::lane_id() == 0) counts[rlx::warp_id()] = __popc(votes);
    __syncthreads();
    int before = 0, all = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) {
      before += w < rlx::warp_id() ? counts[w] : 0;
      all += counts[w];
    }
    if (mine) p.places[start + before + __popc(votes & ((1u << rlx::lane_id()) - 1))] = int(i);
    start += all;
    __syncthreads();
  }
  if (threadIdx.x == 0 && group + 1 == p.group_count) p.starts[group + 1] = start;
}
