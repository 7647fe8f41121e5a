// What the kernels of recurrent layers share: a row of the batch in one direction, its gates, and
// its places in x and y. RLX_T, RLX_W and RLX_KIND say which layer it is.
#pragma once

#include "kernels/include/element.h"
#include "kernels/include/scalar_ops.h"
#include "kernels/include/warp.h"
#include "kernels/params/recurrent.h"

namespace rlx::recurrent {

using S = RLX_T;
using T = ComputeOf<S>;  // of the state, from step to step
using W = RLX_W;         // of the weights: S, or 8-bit integers with scales and zero points
using params::Gate;
using params::GateFunction;
using params::Recurrent;
enum { lstm, gru, rnn };
constexpr int warps = RLX_BLOCK / warp_size;
constexpr bool rounded = sizeof(W) == 1;
constexpr int gate_count = RLX_KIND == lstm ? 4 : RLX_KIND == gru ? 3 : 1;

RLX_FN T activate(const Gate& gate, T clip, T x) {
  const T alpha = T(gate.alpha), beta = T(gate.beta);
  if (clip > 0) x = x > clip ? clip : x < -clip ? -clip : x;
  switch (gate.function) {
    case GateFunction::sigmoid: return scalar::sigmoid(x);
    case GateFunction::tanh: return scalar::tanh(x);
    case GateFunction::relu: return x < 0 ? T(0) : x;
    case GateFunction::affine: return x * alpha + beta;
    case GateFunction::leaky_relu: return x < 0 ? x * alpha : x;
    case GateFunction::thresholded_relu: return x < alpha ? T(0) : x;
    case GateFunction::scaled_tanh: return scalar::tanh(x * beta) * alpha;
    case GateFunction::hard_sigmoid:
      x = x * alpha + beta;
      return x < 0 ? T(0) : x > 1 ? T(1) : x;
    case GateFunction::elu: return x < 0 ? alpha * (scalar::exp(x) - T(1)) : x;
    case GateFunction::softsign: return x / (T(1) + scalar::abs(x));
    case GateFunction::softplus: return scalar::softplus(x);
  }
  return x;
}

// One row of the batch in one direction: its operands and its state in memory.
struct Row {
  const W *w, *r;
  const float* scale[2];  // of w and r, or null
  const W* zero[2];
  const S *bias, *peephole;
  const Gate* gates;
  T clip;
  T *h, *c;
  T* spare;  // GRU: r * h; then the state's part of the candidate, or the state of every other step
  T* pre;    // gates before their activations
};

RLX_FN Row row_of(const Recurrent& p, int direction, long long b) {
  const long long n = p.hidden, all = gate_count * n;
  Row row;
  row.w = static_cast<const W*>(p.w) + direction * all * p.input;
  row.r = static_cast<const W*>(p.r) + direction * all * n;
  for (int k = 0; k < 2; ++k) {
    const long long scale = direction * (p.scale_each[k] ? all : 1);
    const long long zero = direction * (p.zero_each[k] ? all : 1);
    row.scale[k] = p.scale[k] ? p.scale[k] + scale : nullptr;
    row.zero[k] = p.zero[k] ? static_cast<const W*>(p.zero[k]) + zero : nullptr;
  }
  row.bias = p.bias ? static_cast<const S*>(p.bias) + direction * 2 * all : nullptr;
  row.peephole = p.peephole ? static_cast<const S*>(p.peephole) + direction * 3 * n : nullptr;
  row.gates = p.gates[direction];
  row.clip = T(p.clip);
  row.h = static_cast<T*>(p.state) + (b * p.directions + direction) * (all + 4 * n);
  row.c = row.h + n;
  row.spare = row.c + n;
  row.pre = row.spare + 2 * n;
  return row;
}

RLX_FN T value_of(const S* at) { return load(at); }
// State that halves are computed with.
template <class V> RLX_FN T value_of(const V* at) { return *at; }

// What a step adds up for one unit: its gates, and of a GRU the state's part of the candidate.
struct Sums {
  T gate[gate_count];
  T candidate;
};

// Unit j of the state after a step; h is the state before it.
RLX_FN T update(const Recurrent& p, const Row& row, long long j, const Sums& sums, T h) {
  const auto gate = [&](int k, T x) { return activate(row.gates[k], row.clip, x); };
  const T* pre = sums.gate;
  if constexpr (RLX_KIND == lstm) {
    const auto peep = [&](long long k) {
      return row.peephole ? load(row.peephole + k * p.hidden + j) * row.c[j] : T(0);
    };
    const T pi = peep(0), pf = peep(2);
    const T i = gate(0, pre[0] + pi);
    const T f = p.input_forget ? T(1) - i : gate(0, pre[2] + pf);
    row.c[j] = f * row.c[j] + i * gate(1, pre[3]);
    return gate(0, pre[1] + peep(1)) * gate(2, row.c[j]);
  } else if constexpr (RLX_KIND == gru) {
    T candidate = pre[2];
    if constexpr (RLX_LINEAR_BEFORE_RESET) candidate += gate(0, pre[1]) * sums.candidate;
    candidate = gate(1, candidate);
    const T z = gate(0, pre[0]);
    return (T(1) - z) * candidate + z * h;
  } else {
    return gate(0, pre[0]);
  }
}

// Where y has the units of a step, or null.
RLX_FN S* output_of(const Recurrent& p, int direction, long long b, long long t) {
  if (!p.y) return nullptr;
  const long long at = p.batchwise ? (b * p.steps + t) * p.directions + direction
                                   : (t * p.directions + direction) * p.batch + b;
  return static_cast<S*>(p.y) + at * p.hidden;
}

RLX_FN const S* input_of(const Recurrent& p, long long b, long long t) {
  return static_cast<const S*>(p.x) +
         (p.batchwise ? b * p.steps + t : t * p.batch + b) * p.input;
}

RLX_FN long long state_of(const Recurrent& p, int direction, long long b) {
  return (p.batchwise ? b * p.directions + direction : direction * p.batch + b) * p.hidden;
}

// Which step of x comes when so many are done.
RLX_FN long long step_after(const Recurrent& p, int direction, long long done) {
  return direction == 1 || p.reverse ? p.steps - 1 - done : done;
}

// Unit j of the state before the first step, and after the last.
RLX_FN void begin_unit(const Recurrent& p, const Row& row, long long state_at, long long j) {
  row.h[j] = p.initial_h ? load(static_cast<const S*>(p.initial_h) + state_at + j) : T(0);
  row.c[j] = p.initial_c ? load(static_cast<const S*>(p.initial_c) + state_at + j) : T(0);
}

RLX_FN void end_unit(const Recurrent& p, const Row& row, long long state_at, long long j, T h) {
  if (p.y_h) store(static_cast<S*>(p.y_h) + state_at + j, h);
  if (p.y_c) store(static_cast<S*>(p.y_c) + state_at + j, row.c[j]);
}

// Of row b; none where the length is bad, which check_length reports.
RLX_FN long long length_of(const Recurrent& p, long long b) {
  const long long length = p.lengths ? p.lengths[b] : p.steps;
  return length >= 0 && length <= p.steps ? length : 0;
}

RLX_FN void check_length(const Recurrent& p, long long b) {
  if (p.lengths && (p.lengths[b] < 0 || p.lengths[b] > p.steps)) atomicOr(p.fault, 1ull);
}

}  // namespace rlx::recurrent
