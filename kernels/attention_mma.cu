// Attention on tensor cores for half types and TF32: 16 query rows a warp, whose keys and values
// come through shared memory a tile ahead; RLX_WAYS warps share rows, each takes part of a tile.
#if RLX_SCORE
#include "generated/score.h"
#endif
#include "kernels/include/async_copy.h"
#include "kernels/include/mma.h"
#include "kernels/include/reduce_kinds.h"
#include "kernels/include/warp.h"
#include "kernels/params/attention.h"

namespace {

using S = RLX_T;
using rlx::params::Attention;
constexpr bool single = sizeof(S) == 4;                    // float, as TF32
constexpr int depth = RLX_DEPTH, width = RLX_VALUE_DEPTH;  // rounded up to 16
constexpr int row_warps = RLX_ROW_WARPS, ways = RLX_WAYS, block_rows = row_warps * 16;
constexpr int threads = row_warps * ways * 32;
constexpr int tile = RLX_TILE, part = tile / ways;  // keys of a block, of a warp
constexpr int chunk = RLX_CHUNK;                    // elements that are aligned together
constexpr int each = 4 / int(sizeof(S));            // elements of a fragment's word
constexpr int step = 8 * each, piece = 4 * each;    // along the inner dim of a product, of a matrix
// Rows end in 16 bytes more, so that a warp's fragments come from different banks.
constexpr int key_pitch = depth + piece, value_pitch = width + piece;
constexpr float log2e = 1.44269504f;

struct Tile {
  alignas(16) S keys[tile * key_pitch];
  alignas(16) S values[tile * value_pitch];
};

struct Place {  // of a warp: its rows are `row` and `row + 8` for each lane
  long long image, head, row;
  int way;
};

struct State {  // scores are powers of 2
  rlx::MmaC sums[width / 8];
  float top[2], total[2] = {};
};

RLX_FN float larger(float a, float b) { return a > b || a != a ? a : b; }

// What weighs 2^from when the largest is 2^to; nothing while every key is hidden.
RLX_FN float factor(float from, float to) {
  return from == rlx::lowest_value<float>() ? 0.0f : rlx::fast_exp2(from - to);
}

template <class Visit> RLX_FN void each_chunk(int columns, const Visit& visit) {
  const int all = tile * (columns / chunk);
#pragma unroll 4
  for (int i = int(threadIdx.x); i < all; i += threads) {
    visit(i / (columns / chunk), i % (columns / chunk) * chunk);
  }
}

RLX_FN void load_tile(const Attention& p, const S* k, const S* v, long long key0, Tile& to) {
  each_chunk(depth, [&](int r, int c) {
    rlx::copy_elements<chunk>(to.keys + r * key_pitch + c, k + ((key0 + r) * p.k_strides.row + c),
                              key0 + r < p.keys && c < p.depth);
  });
  each_chunk(width, [&](int r, int c) {
    rlx::copy_elements<chunk>(to.values + r * value_pitch + c,
                              v + ((key0 + r) * p.v_strides.row + c),
                              key0 + r < p.keys && c < p.value_depth);
  });
  rlx::async_commit();
}

template <class T> RLX_FN void round_run(T* at) {
  if constexpr (sizeof(T) == 4) {
    T x[chunk];
    rlx::load_run<chunk>(x, at);
#pragma unroll
    for (int i = 0; i < chunk; ++i) x[i] = __builtin_bit_cast(float, rlx::tf32_word(x[i]));
    rlx::store_run<chunk>(at, x);
  }
}

// What this thread copied, as products take it.
RLX_FN void round_tile(Tile& tile) {
  if (!single) return;
  each_chunk(depth, [&](int r, int c) { round_run(tile.keys + r * key_pitch + c); });
  each_chunk(width, [&](int r, int c) { round_run(tile.values + r * value_pitch + c); });
}

RLX_FN unsigned word_at(const S* x) { return *reinterpret_cast<const unsigned*>(x); }

// A word of a query row, zero outside.
template <class T>
RLX_FN unsigned query_word(const Attention& p, const T* q, long long row, int d) {
  if (row >= p.queries || d >= p.depth) return 0u;
  const T* at = q + (row * p.q_strides.row + d);
  if constexpr (single) {
    return rlx::tf32_word(*at);
  } else {
    return word_at(at);
  }
}

// The weights of `step` keys as the left operand: of floats the accumulator holds keys 2t and
// 2t + 1 where the operand has t and t + 4, so the values are read in that order.
template <class T> RLX_FN rlx::MmaA weights_of(const rlx::MmaC (&s)[part / 8], int k) {
  if constexpr (single) {
    const float* x = s[k].value;
    return {{rlx::tf32_word(x[0]), rlx::tf32_word(x[2]), rlx::tf32_word(x[1]),
             rlx::tf32_word(x[3])}};
  } else {
    const float *x = s[2 * k].value, *y = s[2 * k + 1].value;
    return {{rlx::pack_pair<T>(x[0], x[1]), rlx::pack_pair<T>(x[2], x[3]),
             rlx::pack_pair<T>(y[0], y[1]), rlx::pack_pair<T>(y[2], y[3])}};
  }
}

// The values of those keys in 16 columns as two right operands.
RLX_FN rlx::MmaA values_of(const S* values, int k, int n) {
  const int lane = rlx::lane_id();
  if constexpr (single) {
    const S* at = values + (k * step + lane % 4 * 2) * value_pitch + n * 16 + lane / 4;
    return {{word_at(at), word_at(at + value_pitch), word_at(at + 8),
             word_at(at + value_pitch + 8)}};
  } else {
    return rlx::load_matrices<true>(values + (k * 16 + lane / 8 % 2 * 8 + lane % 8) * value_pitch +
                                    n * 16 + lane / 16 * 8);
  }
}

// Products become scores: those of two neighbouring keys of a row.
RLX_FN void score(const Attention& p, const Place& at, int h, long long key, float (&x)[2]) {
#if RLX_SCORE
  const long long row = at.row + h * 8 < p.queries ? at.row + h * 8 : p.queries - 1;
  const long long line = ((at.image * p.heads + at.head) * p.queries + row) * p.keys;
  constexpr int together = RLX_SCORE_VECTOR;
#pragma unroll
  for (int e = 0; e < 2; e += together) {
    float given[together], made[together];
#pragma unroll
    for (int i = 0; i < together; ++i) given[i] = x[e + i] * p.scale;
    const long long here = key + e < p.keys ? key + e : p.keys - together;
    rlx::score::values<together>(p.score, rlx::score::Index(line + here), given, made);
#pragma unroll
    for (int i = 0; i < together; ++i) x[e + i] = made[i] * log2e;
  }
#else
  x[0] *= p.scale * log2e;
  x[1] *= p.scale * log2e;
#endif
}

// How many keys of a tile's part a row sees.
RLX_FN int seen_of(const Attention& p, long long row, long long key0) {
  long long seen = p.keys - key0;
#if RLX_CAUSAL
  const long long allowed = row + p.causal_offset + 1 - key0;
  seen = allowed < seen ? allowed : seen;
#endif
  return seen < 0 ? 0 : seen < part ? int(seen) : part;
}

// Scores become weights, the state makes room for a larger score; half h of the warp's rows.
RLX_FN void soften(rlx::MmaC (&s)[part / 8], State& state, int h) {
  float now = state.top[h];
#pragma unroll
  for (int j = 0; j < part / 8; ++j) {
    now = larger(larger(now, s[j].value[2 * h]), s[j].value[2 * h + 1]);
  }
  now = larger(now, rlx::shuffle_xor(now, 1));
  now = larger(now, rlx::shuffle_xor(now, 2));
  // While every key is hidden nothing is added.
  const bool any = now != rlx::lowest_value<float>();
  const float keep = any ? rlx::fast_exp2(state.top[h] - now) : 1.0f;
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < part / 8; ++j) {
#pragma unroll
    for (int e = 2 * h; e < 2 * h + 2; ++e) {
      s[j].value[e] = any ? rlx::fast_exp2(s[j].value[e] - now) : 0.0f;
      sum += s[j].value[e];
    }
  }
  state.total[h] = state.total[h] * keep + sum;  // of this lane's keys; joined at the end
  state.top[h] = now;
#pragma unroll
  for (int n = 0; n < width / 8; ++n) {
    state.sums[n].value[2 * h] *= keep;
    state.sums[n].value[2 * h + 1] *= keep;
  }
}

// The warp's part of a tile, whose first key is key0.
RLX_FN void take(const Attention& p, const Place& at, const rlx::MmaA (&q)[depth / step],
                 const Tile& shared, long long key0, State& state) {
  const int lane = rlx::lane_id();
  const int seen[2] = {seen_of(p, at.row, key0), seen_of(p, at.row + 8, key0)};
  if (!__any_sync(rlx::all_lanes, seen[0] > 0 || seen[1] > 0)) return;
  rlx::MmaC s[part / 8];
  const S* keys = shared.keys + (at.way * part + lane / 16 * 8 + lane % 8) * key_pitch +
                  lane / 8 % 2 * piece;
#pragma unroll
  for (int d = 0; d < depth / step; ++d) {
#pragma unroll
    for (int j = 0; j < part / 16; ++j) {
      const rlx::MmaA two = rlx::load_matrices<false>(keys + j * 16 * key_pitch + d * step);
      rlx::mma_add(s[2 * j], q[d], {two.word[0], two.word[1]}, S{});
      rlx::mma_add(s[2 * j + 1], q[d], {two.word[2], two.word[3]}, S{});
    }
  }
#pragma unroll
  for (int j = 0; j < part / 8; ++j) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int key = j * 8 + lane % 4 * 2;
      float x[2] = {s[j].value[2 * h], s[j].value[2 * h + 1]};
      score(p, at, h, key0 + key, x);
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        s[j].value[2 * h + e] = key + e < seen[h] ? x[e] : rlx::lowest_value<float>();
      }
    }
  }
  soften(s, state, 0);
  soften(s, state, 1);
  const S* values = shared.values + at.way * part * value_pitch;
#pragma unroll
  for (int k = 0; k < part / step; ++k) {
    const rlx::MmaA weights = weights_of<S>(s, k);
#pragma unroll
    for (int n = 0; n < width / 16; ++n) {
      const rlx::MmaA two = values_of(values, k, n);
      rlx::mma_add(state.sums[2 * n], weights, {two.word[0], two.word[1]}, S{});
      rlx::mma_add(state.sums[2 * n + 1], weights, {two.word[2], two.word[3]}, S{});
    }
  }
}

// The first of the warps that share rows takes what the others have.
RLX_FN void join(const Place& at, float* shared, State& state) {
  constexpr int size = width / 2 + 4;  // floats of a lane
  const int mine = rlx::warp_id() % row_warps * 32 + rlx::lane_id();
  const auto slot = [&](int way, int i) -> float& {
    return shared[((way - 1) * size + i) * row_warps * 32 + mine];
  };
  __syncthreads();  // the tiles are read
  if (at.way > 0) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      slot(at.way, h) = state.top[h];
      slot(at.way, 2 + h) = state.total[h];
    }
#pragma unroll
    for (int i = 0; i < width / 2; ++i) slot(at.way, 4 + i) = state.sums[i / 4].value[i % 4];
  }
  __syncthreads();
  if (at.way > 0) return;
#pragma unroll
  for (int way = 1; way < ways; ++way) {
    float keep[2], other[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float top = slot(way, h), now = larger(state.top[h], top);
      keep[h] = factor(state.top[h], now), other[h] = factor(top, now);
      state.total[h] = state.total[h] * keep[h] + slot(way, 2 + h) * other[h];
      state.top[h] = now;
    }
#pragma unroll
    for (int i = 0; i < width / 2; ++i) {
      float& sum = state.sums[i / 4].value[i % 4];
      sum = sum * keep[i % 4 / 2] + slot(way, 4 + i) * other[i % 4 / 2];
    }
  }
}

template <class T> RLX_FN void write_pair(T* to, float low, float high, bool both) {
  if constexpr (single) {
    to[0] = low;
    if (both) to[1] = high;
  } else {
    *reinterpret_cast<unsigned*>(to) = rlx::pack_pair<T>(low, high);
  }
}

RLX_FN void write(const Attention& p, const Place& at, State& state) {
  S* y = static_cast<S*>(p.y) + (at.image * p.y_strides.batch + at.head * p.y_strides.head);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float total = state.total[h];
    total += rlx::shuffle_xor(total, 1);
    total += rlx::shuffle_xor(total, 2);
    const long long row = at.row + h * 8;
    if (row >= p.queries) continue;
#pragma unroll
    for (int n = 0; n < width / 8; ++n) {
      const int c = n * 8 + rlx::lane_id() % 4 * 2;
      if (c >= p.value_depth) continue;
      // A row that sees no key is 0 / 0.
      write_pair(y + (row * p.y_strides.row + c), state.sums[n].value[2 * h] / total,
                 state.sums[n].value[2 * h + 1] / total, c + 1 < p.value_depth);
    }
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads) attention_mma(const Attention p) {
  RLX_DYNAMIC_SHARED(shared);
  Tile* tiles = reinterpret_cast<Tile*>(shared);
  const long long row_blocks = (p.queries + block_rows - 1) / block_rows;
  unsigned long long rest = rlx::block_rank();
  // The last rows first: where later keys are hidden they have most to do.
  const long long first = (row_blocks - 1 - (long long)(rest % row_blocks)) * block_rows;
  rest /= row_blocks;
  const Place at = {(long long)(rest / p.heads), (long long)(rest % p.heads),
                    first + rlx::warp_id() % row_warps * 16 + rlx::lane_id() / 4,
                    rlx::warp_id() / row_warps};
  if (at.image >= p.batch) return;
  const long long kv_head = at.head / (p.heads / p.kv_heads);
  const S* q = static_cast<const S*>(p.q) +
               (at.image * p.q_strides.batch + at.head * p.q_strides.head);
  const S* k = static_cast<const S*>(p.k) +
               (at.image * p.k_strides.batch + kv_head * p.k_strides.head);
  const S* v = static_cast<const S*>(p.v) +
               (at.image * p.v_strides.batch + kv_head * p.v_strides.head);
  rlx::MmaA queries[depth / step];
#pragma unroll
  for (int d = 0; d < depth / step; ++d) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      queries[d].word[e] = query_word(p, q, at.row + e % 2 * 8,
                                      d * step + rlx::lane_id() % 4 * each + e / 2 * (step / 2));
    }
  }
  State state;
  state.top[0] = state.top[1] = rlx::lowest_value<float>();
  long long keys = p.keys;
#if RLX_CAUSAL
  const long long seen = first + block_rows + p.causal_offset;
  keys = seen < keys ? (seen > 0 ? seen : 0) : keys;
#endif
  if (keys > 0) load_tile(p, k, v, 0, tiles[0]);
  for (long long key0 = 0, i = 0; key0 < keys; key0 += tile, ++i) {
    rlx::async_wait<0>();
    round_tile(tiles[i % 2]);
    __syncthreads();  // this tile is here, and nobody reads the one before
    if (key0 + tile < keys) load_tile(p, k, v, key0 + tile, tiles[(i + 1) % 2]);
    take(p, at, queries, tiles[i % 2], key0 + at.way * part, state);
  }
  if constexpr (ways > 1) join(at, reinterpret_cast<float*>(shared), state);
  if (at.way == 0) write(p, at, state);
}
