// Attention without the score matrix: a warp keeps a running softmax for each of its query rows.
//
// A block takes 16 rows and up to 128 columns of values; keys and values come through shared
// memory 32 rows at a time, in slices of 128 columns, so that any head dim fits.
#if RLX_SCORE
#include "generated/score.h"
#endif
#include "kernels/include/element.h"
#include "kernels/include/reduce_kinds.h"
#include "kernels/include/warp.h"
#include "kernels/params/attention.h"

namespace {

using S = RLX_T;
constexpr int warps = 4, rows = 4, block_rows = warps * rows, tile = 32, slice = 128;
constexpr int threads = warps * 32, each = RLX_VALUE_SLICE / 32;

RLX_FN float larger(float a, float b) { return a > b || a != a ? a : b; }
RLX_FN float added(float a, float b) { return a + b; }
RLX_FN int smaller(int a, int b) { return a < b ? a : b; }

// `count` rows of `width` columns into shared memory; what lies outside is zero.
RLX_FN void copy_rows(float* to, int pitch, const S* from, long long stride, int count, int all,
                      int width, int columns) {
  for (int i = int(threadIdx.x); i < all * columns; i += threads) {
    const int r = i / columns, c = i % columns;
    to[r * pitch + c] = r < count && c < width ? rlx::load(from + (r * stride + c)) : 0.0f;
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads) attention(const rlx::params::Attention p) {
  __shared__ float qs[block_rows * slice];
  __shared__ float ks[tile * (slice + 1)];
  __shared__ float vs[tile * RLX_VALUE_SLICE];
  const long long row_blocks = (p.queries + block_rows - 1) / block_rows;
  const int slices = (p.value_depth + RLX_VALUE_SLICE - 1) / RLX_VALUE_SLICE;
  unsigned long long rest = rlx::block_rank();
  const int value0 = int(rest % slices) * RLX_VALUE_SLICE;
  rest /= slices;
  const long long first = (long long)(rest % row_blocks) * block_rows;
  rest /= row_blocks;
  const long long head = (long long)(rest % p.heads), image = (long long)(rest / p.heads);
  const long long kv_head = head / (p.heads / p.kv_heads);
  const S* q = static_cast<const S*>(p.q) + (image * p.q_strides.batch + head * p.q_strides.head +
                                             first * p.q_strides.row);
  const S* k = static_cast<const S*>(p.k) +
               (image * p.k_strides.batch + kv_head * p.k_strides.head);
  const S* v = static_cast<const S*>(p.v) +
               (image * p.v_strides.batch + kv_head * p.v_strides.head + value0);
  const int lane = rlx::lane_id(), warp = rlx::warp_id();
  const int query_rows = smaller(block_rows, int(p.queries - first));
  const int value_width = smaller(RLX_VALUE_SLICE, p.value_depth - value0);

  float sums[rows][each] = {}, top[rows], total[rows];
#pragma unroll
  for (int r = 0; r < rows; ++r) top[r] = rlx::lowest_value<float>(), total[r] = 0.0f;
  long long keys = p.keys;
#if RLX_CAUSAL
  const long long seen = first + query_rows + p.causal_offset;  // by the last row of the block
  keys = seen < keys ? (seen > 0 ? seen : 0) : keys;
#endif
  for (long long key0 = 0; key0 < keys; key0 += tile) {
    const int count = smaller(tile, int(keys - key0));
    float s[rows] = {};
    for (int d0 = 0; d0 < p.depth; d0 += slice) {
      const int width = smaller(slice, p.depth - d0);
      __syncthreads();
      if (key0 == 0 || p.depth > slice) {
        copy_rows(qs, slice, q + d0, p.q_strides.row, query_rows, block_rows, width, width);
      }
      copy_rows(ks, slice + 1, k + (key0 * p.k_strides.row + d0), p.k_strides.row, count, tile,
                width, width);
      __syncthreads();
      for (int d = 0; d < width; ++d) {
        const float x = ks[lane * (slice + 1) + d];
#pragma unroll
        for (int r = 0; r < rows; ++r) s[r] += qs[(warp * rows + r) * slice + d] * x;
      }
    }
    copy_rows(vs, RLX_VALUE_SLICE, v + key0 * p.v_strides.row, p.v_strides.row, count, tile,
              value_width, RLX_VALUE_SLICE);
    __syncthreads();
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      const long long row = first + warp * rows + r, key = key0 + lane;
      float x[1] = {s[r] * p.scale};
#if RLX_SCORE
      if (row < p.queries && lane < count) {
        const float given[1] = {x[0]};
        rlx::score::values<1>(p.score,
                              rlx::score::Index(((image * p.heads + head) * p.queries + row) *
                                                    p.keys + key), given, x);
      }
#endif
      bool hidden = lane >= count;
#if RLX_CAUSAL
      hidden = hidden || key > row + p.causal_offset;
#endif
      if (hidden) x[0] = rlx::lowest_value<float>();
      const float now = larger(top[r], rlx::warp_reduce(x[0], larger));
      // While every key is hidden nothing is added.
      const bool any = now != rlx::lowest_value<float>();
      const float weight = any ? rlx::scalar::exp(x[0] - now) : 0.0f;
      const float keep = any ? rlx::scalar::exp(top[r] - now) : 1.0f;
      total[r] = total[r] * keep + rlx::warp_reduce(weight, added);
      top[r] = now;
#pragma unroll
      for (int e = 0; e < each; ++e) sums[r][e] *= keep;
      for (int j = 0; j < count; ++j) {
        const float w = rlx::shuffle_from(weight, j);
#pragma unroll
        for (int e = 0; e < each; ++e) {
          sums[r][e] += w * vs[j * RLX_VALUE_SLICE + e * 32 + lane];
        }
      }
    }
  }
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    const long long row = first + warp * rows + r;
    if (row >= p.queries) continue;
    S* y = static_cast<S*>(p.y) + (image * p.y_strides.batch + head * p.y_strides.head +
                                   row * p.y_strides.row + value0);
#pragma unroll
    for (int e = 0; e < each; ++e) {
      // A row that sees no key is 0 / 0.
      if (e * 32 + lane < value_width) rlx::store(y + e * 32 + lane, sums[r][e] / total[r]);
    }
  }
}
