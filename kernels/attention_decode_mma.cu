// Attention of few query rows over many keys on tensor cores, half types: eight rows of a key head
// are the columns of the products, so that keys and values come straight from memory.
//
// A lane reads 16 bytes of a key or value at a time and uses them in the order in which they come:
// queries and results are put in the same order.
#if RLX_SCORE
#include "generated/score.h"
#endif
#include "kernels/include/attention_rows.h"

namespace {

using S = RLX_T;
using namespace rlx::rows;
constexpr int each = 8;                            // rows of a warp
constexpr int steps = RLX_DEPTH / 32;              // of a key, 32 columns
constexpr int blocks = RLX_VALUE_DEPTH / 64;       // of a value, 64 columns
constexpr int tile = 16;                           // keys of a step

struct Words {  // eight halves
  unsigned word[4];
};

struct State {  // of rows 2t and 2t + 1; m-tile i holds columns 8 g + 2 i and 8 g + 2 i + 1
  rlx::MmaC sums[blocks][4];
  float top[2], total[2] = {};
};

RLX_FN Words words_at(const S* at, bool inside) {
  Words words = {};
  if (inside) {
    const uint4 x = *reinterpret_cast<const uint4*>(at);
    words = {{x.x, x.y, x.z, x.w}};
  }
  return words;
}

// Keys g and g + 8 of a tile.
RLX_FN void load_keys(const Attention& p, const Place& at, const S* k, long long first,
                      Words (&x)[steps][2]) {
  const int g = rlx::lane_id() / 4, t = rlx::lane_id() % 4;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const long long key = first + g + 8 * h;
#pragma unroll
    for (int s = 0; s < steps; ++s) {
      const int c = 32 * s + 8 * t;
      x[s][h] = words_at(k + (key * p.k_strides.row + c), key < at.end && c < p.depth);
    }
  }
}

// Values 2t, 2t + 1, 2t + 8 and 2t + 9 of a tile.
RLX_FN void load_values(const Attention& p, const Place& at, const S* v, long long first,
                        Words (&x)[blocks][4]) {
  const int g = rlx::lane_id() / 4, t = rlx::lane_id() % 4;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const long long key = first + 2 * t + j % 2 + j / 2 * 8;
#pragma unroll
    for (int b = 0; b < blocks; ++b) {
      const int c = 64 * b + 8 * g;
      x[b][j] = words_at(v + (key * p.v_strides.row + c), key < at.end && c < p.value_depth);
    }
  }
}

RLX_FN void add_products(rlx::MmaC& s, const Words (&k)[steps][2], const Words (&q)[steps]) {
#pragma unroll
  for (int i = 0; i < steps; ++i) {
#pragma unroll
    for (int w = 0; w < 4; w += 2) {
      rlx::mma_add(s, {{k[i][0].word[w], k[i][1].word[w], k[i][0].word[w + 1],
                        k[i][1].word[w + 1]}},
                   {{q[i].word[w], q[i].word[w + 1]}}, S{});
    }
  }
}

// The scores become weights; s holds keys g (row 2t, row 2t + 1) and g + 8.
RLX_FN void soften(const Attention& p, const Place& at, long long first, rlx::MmaC& s,
                   State& state) {
  const int g = rlx::lane_id() / 4, t = rlx::lane_id() % 4;
#pragma unroll
  for (int e = 0; e < 2; ++e) {
    float now = state.top[e];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float& x = s.value[2 * h + e];
      x = score_of(p, at, at.row + 2 * t + e, first + g + 8 * h, x);
      now = larger(now, x);
    }
#pragma unroll
    for (int bits = 4; bits < 32; bits *= 2) now = larger(now, rlx::shuffle_xor(now, bits));
    const float keep = factor(state.top[e], now);
    s.value[e] = factor(s.value[e], now);
    s.value[2 + e] = factor(s.value[2 + e], now);
    state.top[e] = now;
    state.total[e] = state.total[e] * keep + s.value[e] + s.value[2 + e];  // of this lane's keys
#pragma unroll
    for (int i = 0; i < blocks * 4; ++i) {
      state.sums[i / 4][i % 4].value[e] *= keep;
      state.sums[i / 4][i % 4].value[2 + e] *= keep;
    }
  }
}

// The weights as right operands: rounded to half, and what the rounding left.
RLX_FN void weights_of(const rlx::MmaC& s, rlx::MmaB (&w)[2]) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const unsigned word = rlx::pack_pair<S>(s.value[2 * h], s.value[2 * h + 1]);
    const float low = rlx::Element<S>::load(S{(unsigned short)(word)});
    const float high = rlx::Element<S>::load(S{(unsigned short)(word >> 16)});
    w[0].word[h] = rlx::transpose_matrix(word);
    w[1].word[h] = rlx::transpose_matrix(
        rlx::pack_pair<S>(s.value[2 * h] - low, s.value[2 * h + 1] - high));
  }
}

RLX_FN unsigned low_halves(unsigned a, unsigned b) { return (a & 0xffffu) | b << 16; }
RLX_FN unsigned high_halves(unsigned a, unsigned b) { return a >> 16 | (b & 0xffff0000u); }

RLX_FN void add_values(const Words (&v)[blocks][4], const rlx::MmaB (&w)[2], State& state) {
#pragma unroll
  for (int b = 0; b < blocks; ++b) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const auto of = [&](int j) { return v[b][j].word[i]; };
      const rlx::MmaA a = {{low_halves(of(0), of(1)), high_halves(of(0), of(1)),
                            low_halves(of(2), of(3)), high_halves(of(2), of(3))}};
      rlx::mma_add(state.sums[b][i], a, w[0], S{});
      rlx::mma_add(state.sums[b][i], a, w[1], S{});
    }
  }
}

RLX_FN void share(const Attention& p, const State& state, const Shared<each>& shared) {
  const int g = rlx::lane_id() / 4, t = rlx::lane_id() % 4, warp = rlx::warp_id();
#pragma unroll
  for (int e = 0; e < 2; ++e) {
    const int r = 2 * t + e;
    float total = state.total[e];
#pragma unroll
    for (int bits = 4; bits < 32; bits *= 2) total += rlx::shuffle_xor(total, bits);
    if (g == 0) warp_row(shared, warp, r) = {state.top[e], total, 0.0f};
#pragma unroll
    for (int i = 0; i < blocks * 8; ++i) {
      const int c = i / 8 * 64 + 8 * g + i % 8;
      if (c >= p.value_depth) continue;
      sum_of(shared, warp, r, c) = state.sums[i / 8][i % 8 / 2].value[i % 2 * 2 + e];
    }
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads) attention_decode_mma(const Attention p) {
  RLX_DYNAMIC_SHARED(memory);
  const Shared<each> shared = {reinterpret_cast<float*>(memory), p.value_depth};
  const Place at = place_of<each>(p);
  if (at.image >= p.batch) return;
  const int g = rlx::lane_id() / 4, t = rlx::lane_id() % 4;
  Words q[steps], kx[steps][2], vx[blocks][4];
  const bool inside = at.row + g < row_count(p);
  const S* query = query_of<S>(p, at, inside ? at.row + g : 0);
#pragma unroll
  for (int s = 0; s < steps; ++s) {
    q[s] = words_at(query + (32 * s + 8 * t), inside && 32 * s + 8 * t < p.depth);
  }
  const S* k = head_of<S>(at, p.k, p.k_strides);
  const S* v = head_of<S>(at, p.v, p.v_strides);
  State state;
  state.top[0] = state.top[1] = rlx::lowest_value<float>();
  long long first = at.begin + at.way * tile;
  load_keys(p, at, k, first, kx);
  // The next tile's keys are on their way while this one's values are used.
  for (; first < at.end; first += at.ways * tile) {
    load_values(p, at, v, first, vx);
    rlx::MmaC s;
    add_products(s, kx, q);
    load_keys(p, at, k, first + at.ways * tile, kx);
    soften(p, at, first, s, state);
    rlx::MmaB weights[2];
    weights_of(s, weights);
    add_values(vx, weights, state);
  }
  share(p, state, shared);
  write<each, S>(p, at, shared);
}
