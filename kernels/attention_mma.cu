// Attention on tensor cores for half types and TF32: 64 query rows a block, 64 keys at a time.
#if RLX_SCORE
#include "generated/score.h"
#endif
#include "kernels/include/mma.h"
#include "kernels/include/reduce_kinds.h"
#include "kernels/include/vector.h"
#include "kernels/include/warp.h"
#include "kernels/params/attention.h"

namespace {

using S = RLX_T;
using rlx::params::Attention;
constexpr bool single = sizeof(S) == 4;                    // float, as TF32
constexpr int depth = RLX_DEPTH, width = RLX_VALUE_DEPTH;  // rounded up to 16
constexpr int warps = 4, threads = warps * 32, block_rows = warps * 16;
constexpr int tile = single && depth + width > 128 ? 32 : 64;
constexpr int chunk = RLX_CHUNK;         // elements that are aligned together
constexpr int each = 4 / int(sizeof(S)); // elements of a fragment's word
constexpr int step = 8 * each;           // what one product takes along its inner dim
// Rows end in 4 words more, so that a warp's fragments come from different banks.
constexpr int key_pitch = depth + 4 * each;
constexpr int value_pitch = single ? width + 4 : tile + 8;

struct Shared {
  alignas(16) S keys[tile * key_pitch];
  // Halves are transposed, a row for each column, since their words are pairs of keys.
  alignas(16) S values[single ? tile * value_pitch : width * value_pitch];
};

struct Place {  // of a warp: its rows are `row` and `row + 8` for each lane
  long long image, head, row;
};

struct State {
  rlx::MmaC sums[width / 8];
  float top[2], total[2] = {};
};

RLX_FN float larger(float a, float b) { return a > b || a != a ? a : b; }

// `chunk` elements of a row from column c on; zero outside.
RLX_FN void load_chunk(S (&x)[chunk], const S* row, int c, int columns, bool inside) {
  if (inside && c < columns) {
    rlx::load_run<chunk>(x, row + c);
  } else {
#pragma unroll
    for (int i = 0; i < chunk; ++i) x[i] = S{};
  }
}

// As a product takes it.
template <class T> RLX_FN T rounded(T x) {
  if constexpr (single) {
    return __builtin_bit_cast(float, rlx::tf32_word(x));
  } else {
    return x;
  }
}

RLX_FN void load_tile(const Attention& p, const S* k, const S* v, long long key0, Shared& shared) {
  for (int i = int(threadIdx.x); i < tile * (depth / chunk); i += threads) {
    const int r = i / (depth / chunk), c = i % (depth / chunk) * chunk;
    S x[chunk];
    load_chunk(x, k + (key0 + r) * p.k_strides.row, c, p.depth, key0 + r < p.keys);
#pragma unroll
    for (int e = 0; e < chunk; ++e) x[e] = rounded(x[e]);
    rlx::store_run<chunk>(shared.keys + r * key_pitch + c, x);
  }
  for (int i = int(threadIdx.x); i < tile * (width / chunk); i += threads) {
    const int r = single ? i / (width / chunk) : i % tile;
    const int c = (single ? i % (width / chunk) : i / tile) * chunk;
    S x[chunk];
    load_chunk(x, v + (key0 + r) * p.v_strides.row, c, p.value_depth, key0 + r < p.keys);
#pragma unroll
    for (int e = 0; e < chunk; ++e) x[e] = rounded(x[e]);
    if constexpr (single) {
      rlx::store_run<chunk>(shared.values + r * value_pitch + c, x);
    } else {
#pragma unroll
      for (int e = 0; e < chunk; ++e) shared.values[(c + e) * value_pitch + r] = x[e];
    }
  }
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
template <class T> RLX_FN rlx::MmaA weights_of(const rlx::MmaC (&s)[tile / 8], int k) {
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

// The values of those keys in 8 columns as the right operand.
RLX_FN rlx::MmaB values_of(const Shared& shared, int k, int n) {
  const int g = rlx::lane_id() / 4, t = rlx::lane_id() % 4;
  if constexpr (single) {
    const S* values = shared.values + (k * step + 2 * t) * value_pitch + n * 8 + g;
    return {word_at(values), word_at(values + value_pitch)};
  } else {
    const S* values = shared.values + (n * 8 + g) * value_pitch + k * step + 2 * t;
    return {word_at(values), word_at(values + 8)};
  }
}

RLX_FN float score_of(const Attention& p, const Place& at, long long row, long long key,
                      float product) {
  float x[1] = {product * p.scale};
  if (key >= p.keys || row >= p.queries) return rlx::lowest_value<float>();
#if RLX_SCORE
  const float given[1] = {x[0]};
  const long long line = (at.image * p.heads + at.head) * p.queries + row;
  rlx::score::values<1>(p.score, rlx::score::Index(line * p.keys + key), given, x);
#endif
#if RLX_CAUSAL
  if (key > row + p.causal_offset) return rlx::lowest_value<float>();
#endif
  return x[0];
}

// Scores become weights, the state makes room for a larger score; half h of the warp's rows.
RLX_FN void soften(rlx::MmaC (&s)[tile / 8], State& state, int h) {
  float now = state.top[h];
#pragma unroll
  for (int j = 0; j < tile / 8; ++j) {
    now = larger(larger(now, s[j].value[2 * h]), s[j].value[2 * h + 1]);
  }
  now = larger(now, rlx::shuffle_xor(now, 1));
  now = larger(now, rlx::shuffle_xor(now, 2));
  // While every key is hidden nothing is added.
  const bool any = now != rlx::lowest_value<float>();
  const float keep = any ? rlx::scalar::exp(state.top[h] - now) : 1.0f;
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < tile / 8; ++j) {
#pragma unroll
    for (int e = 2 * h; e < 2 * h + 2; ++e) {
      s[j].value[e] = any ? rlx::scalar::exp(s[j].value[e] - now) : 0.0f;
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

RLX_FN void take_tile(const Attention& p, const Place& at, const rlx::MmaA (&q)[depth / step],
                      const Shared& shared, long long key0, State& state) {
  const int g = rlx::lane_id() / 4, t = rlx::lane_id() % 4;
  rlx::MmaC s[tile / 8];
#pragma unroll
  for (int j = 0; j < tile / 8; ++j) {
    const S* keys = shared.keys + (j * 8 + g) * key_pitch + each * t;
#pragma unroll
    for (int d = 0; d < depth / step; ++d) {
      rlx::mma_add(s[j], q[d],
                   {word_at(keys + d * step), word_at(keys + d * step + step / 2)}, S{});
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      s[j].value[e] = score_of(p, at, at.row + e / 2 * 8, key0 + j * 8 + 2 * t + e % 2,
                               s[j].value[e]);
    }
  }
  soften(s, state, 0);
  soften(s, state, 1);
#pragma unroll
  for (int k = 0; k < tile / step; ++k) {
    const rlx::MmaA weights = weights_of<S>(s, k);
#pragma unroll
    for (int n = 0; n < width / 8; ++n) {
      rlx::mma_add(state.sums[n], weights, values_of(shared, k, n), S{});
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
  __shared__ Shared shared;
  const long long row_blocks = (p.queries + block_rows - 1) / block_rows;
  unsigned long long rest = rlx::block_rank();
  const long long first = (long long)(rest % row_blocks) * block_rows;
  rest /= row_blocks;
  const Place at = {(long long)(rest / p.heads), (long long)(rest % p.heads),
                    first + rlx::warp_id() * 16 + rlx::lane_id() / 4};
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
  for (long long key0 = 0; key0 < keys; key0 += tile) {
    __syncthreads();
    load_tile(p, k, v, key0, shared);
    __syncthreads();
    take_tile(p, at, queries, shared, key0, state);
  }
  write(p, at, state);
}
