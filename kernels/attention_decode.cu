// Attention of few query rows over many keys, any head dims and types: a key for each few lanes,
// whose scores the rows of a warp share. Weights stay float.
#if RLX_SCORE
#include "generated/score.h"
#endif
#include "kernels/include/attention_rows.h"
#include "kernels/include/vector.h"

namespace {

using S = RLX_T;
using namespace rlx::rows;
constexpr int each = RLX_ROWS;    // of a warp
constexpr int chunk = RLX_CHUNK;  // columns that are aligned together
constexpr int lanes = RLX_LANES;  // of a key
constexpr int pieces = RLX_PIECES, value_pieces = RLX_VALUE_PIECES;  // chunks of a lane
constexpr int size = pieces * chunk, value_size = value_pieces * chunk;
constexpr int groups = 32 / lanes;
constexpr int ahead = pieces > 4 ? 2 : 4;  // keys of a lane that are loaded before one is used
constexpr int scores = each * ahead;       // of a step; row by row
constexpr int owned = scores > lanes ? scores / lanes : 1;

struct State {  // of the keys that a group of lanes has seen
  float top[each], total[each] = {}, sums[each][value_size] = {};
};

RLX_FN int part_of_key() { return rlx::lane_id() % lanes; }

template <int count>
RLX_FN void load(S (&x)[count][chunk], const S* row, int width, bool inside) {
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const int c = (i * lanes + part_of_key()) * chunk;
#pragma unroll
    for (int j = 0; j < chunk; ++j) x[i][j] = S{};
    if (inside && c < width) rlx::load_run<chunk>(x[i], row + c);
  }
}

// Adds x[0..n) over the lanes of a key; a lane keeps those from first_score() on.
template <int n, int bits> RLX_FN void add_lanes(float (&x)[scores]) {
  if constexpr (bits < lanes && n > 1) {
    const bool upper = (rlx::lane_id() & bits) != 0;
#pragma unroll
    for (int i = 0; i < n / 2; ++i) {
      const float given = upper ? x[i] : x[i + n / 2], kept = upper ? x[i + n / 2] : x[i];
      x[i] = kept + rlx::shuffle_xor(given, bits);
    }
    add_lanes<n / 2, bits * 2>(x);
  } else if constexpr (bits < lanes) {
    x[0] += rlx::shuffle_xor(x[0], bits);
    add_lanes<1, bits * 2>(x);
  }
}
RLX_FN int first_score() {
  int first = 0;
#pragma unroll
  for (int bits = 1, half = scores / 2; bits < lanes && half > 0; bits *= 2, half /= 2) {
    if (rlx::lane_id() & bits) first += half;
  }
  return first;
}
// The first lane of a key that keeps score i.
RLX_FN constexpr int owner_of(int i) {
  int lane = 0;
  for (int bits = 1, half = scores / 2; bits < lanes && half > 0; bits *= 2, half /= 2) {
    if (i & half) lane += bits;
  }
  return lane;
}

// Takes the keys of a step, whose first is `key`, the next `stride` behind it.
RLX_FN void take(const Attention& p, const Place& at, const float (&q)[each][size],
                 const S (&k)[ahead][pieces][chunk], const S (&v)[ahead][value_pieces][chunk],
                 long long key, long long stride, State& state) {
  float x[scores] = {};
#pragma unroll
  for (int a = 0; a < ahead; ++a) {
#pragma unroll
    for (int i = 0; i < size; ++i) {
      const float element = rlx::Element<S>::load(k[a][i / chunk][i % chunk]);
#pragma unroll
      for (int r = 0; r < each; ++r) x[r * ahead + a] += q[r][i] * element;
    }
  }
  add_lanes<scores, 1>(x);
  const int first = first_score(), base = rlx::lane_id() - part_of_key();
#pragma unroll
  for (int i = 0; i < owned; ++i) {
    const int r = (first + i) / ahead, a = (first + i) % ahead;
    x[i] = score_of(p, at, at.row + r, key + a * stride, x[i]);
  }
  float s[scores];
#pragma unroll
  for (int i = 0; i < scores; ++i) s[i] = rlx::shuffle_from(x[i % owned], base + owner_of(i));
#pragma unroll
  for (int r = 0; r < each; ++r) {
    float now = state.top[r];
#pragma unroll
    for (int a = 0; a < ahead; ++a) now = larger(now, s[r * ahead + a]);
    const float keep = factor(state.top[r], now);
    state.top[r] = now;
    state.total[r] *= keep;
#pragma unroll
    for (int i = 0; i < value_size; ++i) state.sums[r][i] *= keep;
#pragma unroll
    for (int a = 0; a < ahead; ++a) {
      s[r * ahead + a] = factor(s[r * ahead + a], now);
      state.total[r] += s[r * ahead + a];
    }
  }
#pragma unroll
  for (int a = 0; a < ahead; ++a) {
#pragma unroll
    for (int i = 0; i < value_size; ++i) {
      const float element = rlx::Element<S>::load(v[a][i / chunk][i % chunk]);
#pragma unroll
      for (int r = 0; r < each; ++r) state.sums[r][i] += s[r * ahead + a] * element;
    }
  }
}

// What the other groups of lanes of the warp have seen.
RLX_FN void join(State& state) {
#pragma unroll
  for (int bits = lanes; bits < 32; bits *= 2) {
#pragma unroll
    for (int r = 0; r < each; ++r) {
      const float other = rlx::shuffle_xor(state.top[r], bits), now = larger(state.top[r], other);
      const float mine = factor(state.top[r], now), theirs = factor(other, now);
      state.top[r] = now;
      state.total[r] = state.total[r] * mine + rlx::shuffle_xor(state.total[r], bits) * theirs;
#pragma unroll
      for (int i = 0; i < value_size; ++i) {
        const float sum = rlx::shuffle_xor(state.sums[r][i], bits);
        state.sums[r][i] = state.sums[r][i] * mine + sum * theirs;
      }
    }
  }
}

RLX_FN void share(const Attention& p, const State& state, const Shared<each>& shared) {
  if (rlx::lane_id() >= lanes) return;
  const int warp = rlx::warp_id();
#pragma unroll
  for (int r = 0; r < each; ++r) {
    if (part_of_key() == 0) {
      warp_row(shared, warp, r) = {state.top[r], state.total[r], 0.0f};
    }
#pragma unroll
    for (int i = 0; i < value_size; ++i) {
      const int c = (i / chunk * lanes + part_of_key()) * chunk + i % chunk;
      if (c < p.value_depth) sum_of(shared, warp, r, c) = state.sums[r][i];
    }
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads) attention_decode(const Attention p) {
  RLX_DYNAMIC_SHARED(memory);
  const Shared<each> shared = {reinterpret_cast<float*>(memory), p.value_depth};
  const Place at = place_of<each>(p);
  if (at.image >= p.batch) return;
  float q[each][size];
  State state;
#pragma unroll
  for (int r = 0; r < each; ++r) {
    S raw[pieces][chunk];
    const bool inside = at.row + r < row_count(p);
    load(raw, query_of<S>(p, at, inside ? at.row + r : 0), p.depth, inside);
#pragma unroll
    for (int i = 0; i < size; ++i) q[r][i] = rlx::Element<S>::load(raw[i / chunk][i % chunk]);
    state.top[r] = rlx::lowest_value<float>();
  }
  const S* k = head_of<S>(at, p.k, p.k_strides);
  const S* v = head_of<S>(at, p.v, p.v_strides);
  const long long stride = at.ways * groups;
  const int group = at.way * groups + rlx::lane_id() / lanes;
  for (long long first = at.begin; first < at.end; first += stride * ahead) {
    S kx[ahead][pieces][chunk], vx[ahead][value_pieces][chunk];
#pragma unroll
    for (int a = 0; a < ahead; ++a) {
      const long long key = first + a * stride + group;
      load(kx[a], k + key * p.k_strides.row, p.depth, key < at.end);
      load(vx[a], v + key * p.v_strides.row, p.value_depth, key < at.end);
    }
    take(p, at, q, kx, vx, first + group, stride, state);
  }
  join(state);
  share(p, state, shared);
  write<each, S>(p, at, shared);
}
