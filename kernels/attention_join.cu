// The parts of the keys that attention of few rows was split into, in a fixed order: a block takes
// 128 columns of a row, its warps take parts in turn.
#include "kernels/include/attention_rows.h"

namespace {

using S = RLX_T;
using rlx::params::Attention;
using namespace rlx::rows;
constexpr int each = 4, slice = each * 32;  // columns of a lane, of a block
constexpr int ahead = 4;                    // parts that are loaded before the first is used

struct State {
  float top = rlx::lowest_value<float>(), total = 0.0f;
};

RLX_FN float add(float a, float b) { return a + b; }

// Of all parts; each warp by itself.
RLX_FN State state_of(const Attention& p, const float* states) {
  State all;
  for (int s = rlx::lane_id(); s < p.parts; s += 32) all.top = larger(all.top, states[2 * s]);
  all.top = rlx::warp_reduce(all.top, larger);
  for (int s = rlx::lane_id(); s < p.parts; s += 32) {
    all.total += states[2 * s + 1] * factor(states[2 * s], all.top);
  }
  all.total = rlx::warp_reduce(all.total, add);
  return all;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads) attention_join(const Attention p) {
  __shared__ float shared[warps][slice];
  const int slices = (p.value_depth + slice - 1) / slice;
  const long long lines = p.batch * p.heads * p.queries;
  const unsigned long long rank = rlx::block_rank();
  const long long line = (long long)(rank / slices);
  if (line >= lines) return;
  const int first = int(rank % slices) * slice, lane = rlx::lane_id();
  const float* sums = p.partial + line * p.parts * p.value_depth;
  const float* states = p.partial + (lines * p.parts * p.value_depth + line * p.parts * 2);
  const State all = state_of(p, states);
  float sum[each] = {};
  for (int s0 = rlx::warp_id(); s0 < p.parts; s0 += warps * ahead) {
    float top[ahead], x[ahead][each];
#pragma unroll
    for (int a = 0; a < ahead; ++a) {
      const int s = s0 + a * warps;
      top[a] = s < p.parts ? states[2 * s] : rlx::lowest_value<float>();
#pragma unroll
      for (int i = 0; i < each; ++i) {
        const int c = first + i * 32 + lane;
        const bool inside = s < p.parts && c < p.value_depth;
        x[a][i] = inside ? sums[(long long)(s) * p.value_depth + c] : 0.0f;
      }
    }
#pragma unroll
    for (int a = 0; a < ahead; ++a) {
      const float weight = factor(top[a], all.top);
#pragma unroll
      for (int i = 0; i < each; ++i) sum[i] += x[a][i] * weight;
    }
  }
#pragma unroll
  for (int i = 0; i < each; ++i) shared[rlx::warp_id()][i * 32 + lane] = sum[i];
  __syncthreads();
  const int column = int(threadIdx.x), c = first + column;
  if (column >= slice || c >= p.value_depth) return;
  float y = 0.0f;
#pragma unroll
  for (int w = 0; w < warps; ++w) y += shared[w][column];
  const long long query = line % p.queries, head = line / p.queries % p.heads;
  const long long image = line / p.queries / p.heads;
  rlx::store(static_cast<S*>(p.y) + (image * p.y_strides.batch + head * p.y_strides.head +
                                     query * p.y_strides.row + c), y / all.total);
}
