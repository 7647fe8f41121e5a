// Recurrent layers: a block walks the steps of one row of the batch in one direction.
#include "kernels/include/scalar_ops.h"
#include "kernels/include/warp.h"
#include "kernels/params/recurrent.h"

namespace {

using T = RLX_T;
using W = RLX_W;  // of the weights: T, or 8-bit integers with scales and zero points
using rlx::params::Gate;
using rlx::params::GateFunction;
using rlx::params::Recurrent;
enum { lstm, gru, rnn };
constexpr int warps = RLX_BLOCK / rlx::warp_size;
constexpr int gate_count = RLX_KIND == lstm ? 4 : RLX_KIND == gru ? 3 : 1;

RLX_FN T activate(const Gate& gate, T clip, T x) {
  const T alpha = T(gate.alpha), beta = T(gate.beta);
  if (clip > 0) x = x > clip ? clip : x < -clip ? -clip : x;
  switch (gate.function) {
    case GateFunction::sigmoid: return rlx::scalar::sigmoid(x);
    case GateFunction::tanh: return rlx::scalar::tanh(x);
    case GateFunction::relu: return x < 0 ? T(0) : x;
    case GateFunction::affine: return x * alpha + beta;
    case GateFunction::leaky_relu: return x < 0 ? x * alpha : x;
    case GateFunction::thresholded_relu: return x < alpha ? T(0) : x;
    case GateFunction::scaled_tanh: return rlx::scalar::tanh(x * beta) * alpha;
    case GateFunction::hard_sigmoid:
      x = x * alpha + beta;
      return x < 0 ? T(0) : x > 1 ? T(1) : x;
    case GateFunction::elu: return x < 0 ? alpha * (rlx::scalar::exp(x) - T(1)) : x;
    case GateFunction::softsign: return x / (T(1) + rlx::scalar::abs(x));
    case GateFunction::softplus: return rlx::scalar::softplus(x);
  }
  return x;
}

RLX_FN T added(T a, T b) { return a + b; }

// One row of the batch in one direction: its operands and its state in memory.
struct Row {
  const W *w, *r;
  const float* scale[2];  // of w and r, or null
  const W* zero[2];
  const T *bias, *peephole;
  const Gate* gates;
  T clip;
  T *h, *c;
  T* spare;  // GRU: r * h, then the state's part of the candidate
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
  row.bias = p.bias ? static_cast<const T*>(p.bias) + direction * 2 * all : nullptr;
  row.peephole = p.peephole ? static_cast<const T*>(p.peephole) + direction * 3 * n : nullptr;
  row.gates = p.gates[direction];
  row.clip = T(p.clip);
  row.h = static_cast<T*>(p.state) + (b * p.directions + direction) * (all + 4 * n);
  row.c = row.h + n;
  row.spare = row.c + n;
  row.pre = row.spare + 2 * n;
  return row;
}

// A warp's product of row `gate` of w (operand 0) or r (1) with x.
RLX_FN T dot(const Recurrent& p, const Row& row, int operand, long long gate, const T* x) {
  const long long n = operand == 0 ? p.input : p.hidden;
  const W* weights = (operand == 0 ? row.w : row.r) + gate * n;
  const T zero = row.zero[operand] ? T(row.zero[operand][p.zero_each[operand] ? gate : 0]) : T(0);
  T sum = 0;
  for (long long i = rlx::lane_id(); i < n; i += rlx::warp_size) {
    sum += (T(weights[i]) - zero) * x[i];
  }
  sum = rlx::warp_reduce(sum, added);
  if (!row.scale[operand]) return sum;
  return sum * T(row.scale[operand][p.scale_each[operand] ? gate : 0]);
}

// The products of a step with x and with the state.
RLX_FN void products(const Recurrent& p, const Row& row, const T* x) {
  const long long n = p.hidden, all = gate_count * n;
  for (long long g = rlx::warp_id(); g < all; g += warps) {
    const bool candidate = RLX_KIND == gru && g >= 2 * n;
    T from_x = dot(p, row, 0, g, x);
    T from_h = candidate && !RLX_LINEAR_BEFORE_RESET ? T(0) : dot(p, row, 1, g, row.h);
    if (row.bias) {
      from_x += row.bias[g];
      from_h += row.bias[all + g];
    }
    if (rlx::lane_id() != 0) continue;
    row.pre[g] = candidate ? from_x : from_x + from_h;
    if (candidate) row.spare[g - n] = from_h;
  }
  __syncthreads();
}

// GRU: what the reset gate leaves of the state, and its product unless that came before.
RLX_FN void reset(const Recurrent& p, const Row& row) {
  const long long n = p.hidden;
  for (long long j = threadIdx.x; j < n; j += RLX_BLOCK) {
    row.spare[j] = activate(row.gates[0], row.clip, row.pre[n + j]) * row.h[j];
  }
  __syncthreads();
  if constexpr (!RLX_LINEAR_BEFORE_RESET) {
    for (long long j = rlx::warp_id(); j < n; j += warps) {
      const T product = dot(p, row, 1, 2 * n + j, row.spare);
      if (rlx::lane_id() == 0) row.pre[2 * n + j] += product + row.spare[n + j];
    }
    __syncthreads();
  }
}

// Unit j of the state after a step.
RLX_FN void update(const Recurrent& p, const Row& row, long long j) {
  const long long n = p.hidden;
  const auto gate = [&](int k, T x) { return activate(row.gates[k], row.clip, x); };
  const T* pre = row.pre;
  if constexpr (RLX_KIND == lstm) {
    const T pi = row.peephole ? row.peephole[j] * row.c[j] : T(0);
    const T pf = row.peephole ? row.peephole[2 * n + j] * row.c[j] : T(0);
    const T i = gate(0, pre[j] + pi);
    const T f = p.input_forget ? T(1) - i : gate(0, pre[2 * n + j] + pf);
    row.c[j] = f * row.c[j] + i * gate(1, pre[3 * n + j]);
    const T po = row.peephole ? row.peephole[n + j] * row.c[j] : T(0);
    row.h[j] = gate(0, pre[n + j] + po) * gate(2, row.c[j]);
  } else if constexpr (RLX_KIND == gru) {
    T candidate = pre[2 * n + j];
    if constexpr (RLX_LINEAR_BEFORE_RESET) candidate += gate(0, pre[n + j]) * row.spare[n + j];
    candidate = gate(1, candidate);
    const T z = gate(0, pre[j]);
    row.h[j] = (T(1) - z) * candidate + z * row.h[j];
  } else {
    row.h[j] = gate(0, pre[j]);
  }
}

// Steps behind the row's length give zeros and leave the state as it is.
RLX_FN void step(const Recurrent& p, const Row& row, int direction, long long b, long long t,
                 bool active) {
  const long long n = p.hidden;
  T* y = nullptr;
  if (p.y) {
    const long long at = p.batchwise ? (b * p.steps + t) * p.directions + direction
                                     : (t * p.directions + direction) * p.batch + b;
    y = static_cast<T*>(p.y) + at * n;
  }
  if (active) {
    products(p, row, static_cast<const T*>(p.x) +
                         (p.batchwise ? b * p.steps + t : t * p.batch + b) * p.input);
    if constexpr (RLX_KIND == gru) reset(p, row);
  }
  for (long long j = threadIdx.x; j < n; j += RLX_BLOCK) {
    if (active) update(p, row, j);
    if (y) y[j] = active ? row.h[j] : T(0);
  }
  __syncthreads();
}

}  // namespace

extern "C" __global__ void __launch_bounds__(RLX_BLOCK) recurrent(const Recurrent p) {
  const long long n = p.hidden;
  const int direction = int(rlx::block_rank() % p.directions);
  const long long b = (long long)(rlx::block_rank() / p.directions);
  if (b >= p.batch) return;
  const Row row = row_of(p, direction, b);
  const long long state_at = (p.batchwise ? b * p.directions + direction
                                          : direction * p.batch + b) * n;
  for (long long j = threadIdx.x; j < n; j += RLX_BLOCK) {
    row.h[j] = p.initial_h ? static_cast<const T*>(p.initial_h)[state_at + j] : T(0);
    row.c[j] = p.initial_c ? static_cast<const T*>(p.initial_c)[state_at + j] : T(0);
  }
  long long length = p.lengths ? p.lengths[b] : p.steps;
  if (length < 0 || length > p.steps) {
    if (threadIdx.x == 0) atomicOr(p.fault, 1ull);
    length = 0;
  }
  __syncthreads();
  const bool backwards = direction == 1 || p.reverse;
  for (long long i = 0; i < p.steps; ++i) {
    const long long t = backwards ? p.steps - 1 - i : i;
    step(p, row, direction, b, t, t < length);
  }
  for (long long j = threadIdx.x; j < n; j += RLX_BLOCK) {
    if (p.y_h) static_cast<T*>(p.y_h)[state_at + j] = row.h[j];
    if (p.y_c) static_cast<T*>(p.y_c)[state_at + j] = row.c[j];
  }
}
