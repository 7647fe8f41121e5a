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
using rlx::params::Attention;
constexpr int warps = 4, rows = 4, block_rows = warps * rows, tile = 32, slice = 128;
constexpr int threads = warps * 32, each = RLX_VALUE_SLICE / 32;

RLX_FN float larger(float a, float b) { return a > b || a != a ? a : b; }
RLX_FN float added(float a, float b) { return a + b; }
RLX_FN int smaller(int a, int b) { return a < b ? a : b; }
RLX_FN long long smaller_long(long long a, long long b) { return a < b ? a : b; }

// `count` rows of `width` columns into shared memory; what lies outside is zero.
RLX_FN void copy_rows(float* to, int pitch, const S* from, long long stride, int count, int all,
                      int width, int columns) {
  for (int i = int(threadIdx.x); i < all * columns; i += threads) {
    const int r = i / columns, c = i % columns;
    to[r * pitch + c] = r < count && c < width ? rlx::load(from + (r * stride + c)) : 0.0f;
  }
}

// What a warp keeps of each of its query rows: weighted values, the largest score, the weights.
struct Rows {
  float sums[rows][each] = {}, top[rows], total[rows] = {};
};

struct Place {  // of a block
  long long image, head, first;
  int value0;
};

RLX_FN Place place_of(const Attention& p) {
  const long long row_blocks = (p.queries + block_rows - 1) / block_rows;
  const int slices = (p.value_depth + RLX_VALUE_SLICE - 1) / RLX_VALUE_SLICE;
  unsigned long long rest = rlx::block_rank();
  Place at;
  at.value0 = int(rest % slices) * RLX_VALUE_SLICE;
  rest /= slices;
  at.first = (long long)(rest % row_blocks) * block_rows;
  rest /= row_blocks;
  at.head = (long long)(rest % p.heads);
  at.image = (long long)(rest / p.heads);
  return at;
}

// s[r] += products of the warp's queries with the key of this lane, over the columns in memory.
RLX_FN void add_scores(const float* qs, const float* ks, int width, float (&s)[rows]) {
  const int lane = rlx::lane_id(), warp = rlx::warp_id();
  for (int d = 0; d < width; ++d) {
    const float x = ks[lane * (slice + 1) + d];
#pragma unroll
    for (int r = 0; r < rows; ++r) s[r] += qs[(warp * rows + r) * slice + d] * x;
  }
}

// The score that the softmax sees: scaled, modified, and -infinity where it is hidden.
RLX_FN float score_of(const Attention& p, const Place& at, long long row, long long key, bool real,
                      float product) {
  float x[1] = {product * p.scale};
#if RLX_SCORE
  if (row < p.queries && real) {
    const float given[1] = {x[0]};
    const long long line = (at.image * p.heads + at.head) * p.queries + row;
    rlx::score::values<1>(p.score, rlx::score::Index(line * p.keys + key), given, x);
  }
#endif
  bool hidden = !real;
#if RLX_CAUSAL
  hidden = hidden || key > row + p.causal_offset;
#endif
  return hidden ? rlx::lowest_value<float>() : x[0];
}

// Takes one tile of keys into row r.
RLX_FN void take(Rows& state, int r, float x, const float* vs, int count) {
  const float now = larger(state.top[r], rlx::warp_reduce(x, larger));
  // While every key is hidden nothing is added.
  const bool any = now != rlx::lowest_value<float>();
  const float weight = any ? rlx::scalar::exp(x - now) : 0.0f;
  const float keep = any ? rlx::scalar::exp(state.top[r] - now) : 1.0f;
  state.total[r] = state.total[r] * keep + rlx::warp_reduce(weight, added);
  state.top[r] = now;
#pragma unroll
  for (int e = 0; e < each; ++e) state.sums[r][e] *= keep;
  for (int j = 0; j < count; ++j) {
    const float w = rlx::shuffle_from(weight, j);
#pragma unroll
    for (int e = 0; e < each; ++e) {
      state.sums[r][e] += w * vs[j * RLX_VALUE_SLICE + e * 32 + rlx::lane_id()];
    }
  }
}

RLX_FN void write(const Attention& p, const Place& at, const Rows& state) {
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    const long long row = at.first + rlx::warp_id() * rows + r;
    if (row >= p.queries) continue;
    S* y = static_cast<S*>(p.y) + (at.image * p.y_strides.batch + at.head * p.y_strides.head +
                                   row * p.y_strides.row + at.value0);
#pragma unroll
    for (int e = 0; e < each; ++e) {
      const int column = e * 32 + rlx::lane_id();
      // A row that sees no key is 0 / 0.
      if (at.value0 + column < p.value_depth) {
        rlx::store(y + column, state.sums[r][e] / state.total[r]);
      }
    }
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads) attention(const Attention p) {
  __shared__ float qs[block_rows * slice];
  __shared__ float ks[tile * (slice + 1)];
  __shared__ float vs[tile * RLX_VALUE_SLICE];
  const Place at = place_of(p);
  if (at.image >= p.batch) return;
  const long long kv_head = at.head / (p.heads / p.kv_heads);
  const S* q = static_cast<const S*>(p.q) + (at.image * p.q_strides.batch +
                                             at.head * p.q_strides.head +
                                             at.first * p.q_strides.row);
  const S* k = static_cast<const S*>(p.k) +
               (at.image * p.k_strides.batch + kv_head * p.k_strides.head);
  const S* v = static_cast<const S*>(p.v) +
               (at.image * p.v_strides.batch + kv_head * p.v_strides.head + at.value0);
  const int query_rows = int(smaller_long(p.queries - at.first, block_rows));
  const int value_width = smaller(RLX_VALUE_SLICE, p.value_depth - at.value0);
  Rows state;
#pragma unroll
  for (int r = 0; r < rows; ++r) state.top[r] = rlx::lowest_value<float>();
  long long keys = p.keys;
#if RLX_CAUSAL
  const long long seen = at.first + query_rows + p.causal_offset;  // by the block's last row
  keys = seen < keys ? (seen > 0 ? seen : 0) : keys;
#endif
  for (long long key0 = 0; key0 < keys; key0 += tile) {
    const int count = int(smaller_long(tile, keys - key0));
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
      add_scores(qs, ks, width, s);
    }
    copy_rows(vs, RLX_VALUE_SLICE, v + key0 * p.v_strides.row, p.v_strides.row, count, tile,
              value_width, RLX_VALUE_SLICE);
    __syncthreads();
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      const long long row = at.first + rlx::warp_id() * rows + r;
      const int lane = rlx::lane_id();
      take(state, r, score_of(p, at, row, key0 + lane, lane < count, s[r]), vs, count);
    }
  }
  write(p, at, state);
}
