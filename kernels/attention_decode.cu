// Attention of few query rows over many keys: a block for each row and head, its warps side by side
// along the keys, a key for each few lanes. Weights stay float.
#if RLX_SCORE
#include "generated/score.h"
#endif
#include "kernels/include/reduce_kinds.h"
#include "kernels/include/vector.h"
#include "kernels/include/warp.h"
#include "kernels/params/attention.h"

namespace {

using S = RLX_T;
using rlx::params::Attention;
constexpr int chunk = RLX_CHUNK;  // columns of a lane, 16 bytes
constexpr int lanes = RLX_LANES;  // of a key
constexpr int warps = 8, groups = 32 / lanes, ways = warps * groups;
constexpr int ahead = 4;          // keys of a lane that are loaded before the first is used
constexpr int width = lanes * chunk;

struct Place {
  long long image, head, row;
};

struct State {  // of the keys that a group of lanes has seen
  float top = rlx::lowest_value<float>(), total = 0.0f, sums[chunk] = {};
};

struct Shared {
  float top[warps], total[warps], sums[warps][width];
};

RLX_FN float larger(float a, float b) { return a > b || a != a ? a : b; }

// What weighs e^from when the largest is e^to; nothing while every key is hidden.
RLX_FN float factor(float from, float to) {
  return from == rlx::lowest_value<float>() ? 0.0f : rlx::scalar::exp(from - to);
}

RLX_FN void load(float (&x)[chunk], const S* row, bool inside) {
  S raw[chunk] = {};
  if (inside) rlx::load_run<chunk>(raw, row);
#pragma unroll
  for (int i = 0; i < chunk; ++i) x[i] = rlx::Element<S>::load(raw[i]);
}

RLX_FN float score_of(const Attention& p, const Place& at, long long key, bool seen,
                      float product) {
  if (!seen) return rlx::lowest_value<float>();
  float x[1] = {product * p.scale};
#if RLX_SCORE
  const float given[1] = {x[0]};
  const long long line = (at.image * p.heads + at.head) * p.queries + at.row;
  rlx::score::values<1>(p.score, rlx::score::Index(line * p.keys + key), given, x);
#endif
  return x[0];
}

RLX_FN void take(State& state, float x, const float (&v)[chunk]) {
  const float now = larger(state.top, x);
  const float keep = factor(state.top, now), weight = factor(x, now);
  state.top = now;
  state.total = state.total * keep + weight;
#pragma unroll
  for (int i = 0; i < chunk; ++i) state.sums[i] = state.sums[i] * keep + weight * v[i];
}

RLX_FN void join(State& state, int bits) {
  const float other = rlx::shuffle_xor(state.top, bits), now = larger(state.top, other);
  const float mine = factor(state.top, now), theirs = factor(other, now);
  state.top = now;
  state.total = state.total * mine + rlx::shuffle_xor(state.total, bits) * theirs;
#pragma unroll
  for (int i = 0; i < chunk; ++i) {
    state.sums[i] = state.sums[i] * mine + rlx::shuffle_xor(state.sums[i], bits) * theirs;
  }
}

// All keys that this group of lanes has to see.
RLX_FN State walk(const Attention& p, const Place& at, const float (&q)[chunk], const S* k,
                  const S* v) {
  const int part = rlx::lane_id() % lanes, group = rlx::warp_id() * groups + rlx::lane_id() / lanes;
  const bool inside = part * chunk < p.depth;
  long long keys = p.keys;
#if RLX_CAUSAL
  const long long last = at.row + p.causal_offset + 1;
  keys = last < keys ? last : keys;
#endif
  State state;
  for (long long first = 0; first < keys; first += ways * ahead) {
    float kx[ahead][chunk], vx[ahead][chunk];
#pragma unroll
    for (int a = 0; a < ahead; ++a) {
      const long long key = first + a * ways + group;
      load(kx[a], k + (key * p.k_strides.row + part * chunk), inside && key < keys);
      load(vx[a], v + (key * p.v_strides.row + part * chunk), inside && key < keys);
    }
#pragma unroll
    for (int a = 0; a < ahead; ++a) {
      float product = 0.0f;
#pragma unroll
      for (int i = 0; i < chunk; ++i) product += q[i] * kx[a][i];
#pragma unroll
      for (int bits = 1; bits < lanes; bits *= 2) product += rlx::shuffle_xor(product, bits);
      const long long key = first + a * ways + group;
      take(state, score_of(p, at, key, key < keys, product), vx[a]);
    }
  }
#pragma unroll
  for (int bits = lanes; bits < 32; bits *= 2) join(state, bits);
  return state;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(warps * 32) attention_decode(const Attention p) {
  __shared__ Shared shared;
  unsigned long long rest = rlx::block_rank();
  Place at;
  at.row = (long long)(rest % p.queries);
  rest /= p.queries;
  at.head = (long long)(rest % p.heads);
  at.image = (long long)(rest / p.heads);
  if (at.image >= p.batch) return;
  const long long kv_head = at.head / (p.heads / p.kv_heads);
  const int part = rlx::lane_id() % lanes, warp = rlx::warp_id();
  float q[chunk];
  load(q, static_cast<const S*>(p.q) + (at.image * p.q_strides.batch + at.head * p.q_strides.head +
                                        at.row * p.q_strides.row + part * chunk),
       part * chunk < p.depth);
  const S* k = static_cast<const S*>(p.k) +
               (at.image * p.k_strides.batch + kv_head * p.k_strides.head);
  const S* v = static_cast<const S*>(p.v) +
               (at.image * p.v_strides.batch + kv_head * p.v_strides.head);
  const State state = walk(p, at, q, k, v);
  if (rlx::lane_id() < lanes) {
    if (part == 0) shared.top[warp] = state.top, shared.total[warp] = state.total;
#pragma unroll
    for (int i = 0; i < chunk; ++i) shared.sums[warp][part * chunk + i] = state.sums[i];
  }
  __syncthreads();
  const int column = int(threadIdx.x);
  if (column >= p.value_depth) return;
  float top = rlx::lowest_value<float>(), total = 0.0f, sum = 0.0f;
#pragma unroll
  for (int w = 0; w < warps; ++w) top = larger(top, shared.top[w]);
#pragma unroll
  for (int w = 0; w < warps; ++w) {
    const float weight = factor(shared.top[w], top);
    total += shared.total[w] * weight;
    sum += shared.sums[w][column] * weight;
  }
  // A row that sees no key is 0 / 0.
  rlx::store(static_cast<S*>(p.y) + (at.image * p.y_strides.batch + at.head * p.y_strides.head +
                                     at.row * p.y_strides.row + column), sum / total);
}
