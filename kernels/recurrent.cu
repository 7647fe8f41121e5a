// Recurrent layers: a block walks the steps of one row of the batch in one direction.
#include "kernels/include/scalar_ops.h"
#include "kernels/include/warp.h"
#include "kernels/params/recurrent.h"

namespace {

using T = RLX_T;
using rlx::params::GateFunction;
enum { lstm, gru, rnn };
constexpr int gate_count = RLX_KIND == lstm ? 4 : RLX_KIND == gru ? 3 : 1;

RLX_FN T activate(const rlx::params::Gate& gate, T clip, T x) {
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

// A warp's product of two rows.
RLX_FN T dot(const T* a, const T* b, long long n) {
  T sum = 0;
  for (long long i = rlx::lane_id(); i < n; i += rlx::warp_size) sum += a[i] * b[i];
  return rlx::warp_reduce(sum, added);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(RLX_BLOCK) recurrent(const rlx::params::Recurrent p) {
  constexpr int warps = RLX_BLOCK / rlx::warp_size;
  const long long n = p.hidden, all = gate_count * n;
  const int direction = int(rlx::block_rank() % p.directions);
  const long long b = (long long)(rlx::block_rank() / p.directions);
  const T* w = static_cast<const T*>(p.w) + direction * all * p.input;
  const T* r = static_cast<const T*>(p.r) + direction * all * n;
  const T* bias = p.bias ? static_cast<const T*>(p.bias) + direction * 2 * all : nullptr;
  const T* peephole = p.peephole ? static_cast<const T*>(p.peephole) + direction * 3 * n : nullptr;
  const rlx::params::Gate* gates = p.gates[direction];
  const T clip = T(p.clip);
  T* h = static_cast<T*>(p.state) + (b * p.directions + direction) * (all + 4 * n);
  T* c = h + n;
  T* spare = c + n;        // GRU: r * h, or the state's part of the candidate
  T* pre = spare + 2 * n;  // gates before their activations
  const long long state_at = (p.batchwise ? b * p.directions + direction
                                          : direction * p.batch + b) * n;
  for (long long j = threadIdx.x; j < n; j += RLX_BLOCK) {
    h[j] = p.initial_h ? static_cast<const T*>(p.initial_h)[state_at + j] : T(0);
    c[j] = p.initial_c ? static_cast<const T*>(p.initial_c)[state_at + j] : T(0);
  }
  long long length = p.lengths ? p.lengths[b] : p.steps;
  if (length < 0 || length > p.steps) {
    if (threadIdx.x == 0) atomicOr(p.fault, 1ull);
    length = 0;
  }
  __syncthreads();
  const bool backwards = direction == 1 || p.reverse;
  for (long long step = 0; step < p.steps; ++step) {
    const long long t = backwards ? p.steps - 1 - step : step;
    T* y = p.y ? static_cast<T*>(p.y) + (p.batchwise ? (b * p.steps + t) * p.directions + direction
                                                     : (t * p.directions + direction) * p.batch + b) *
                                            n
               : nullptr;
    if (t >= length) {
      for (long long j = threadIdx.x; y && j < n; j += RLX_BLOCK) y[j] = T(0);
      continue;
    }
    const T* x = static_cast<const T*>(p.x) +
                 (p.batchwise ? b * p.steps + t : t * p.batch + b) * p.input;
    for (long long g = rlx::warp_id(); g < all; g += warps) {
      const bool candidate = RLX_KIND == gru && g >= 2 * n;
      T from_x = dot(w + g * p.input, x, p.input);
      T from_h = candidate && !RLX_LINEAR_BEFORE_RESET ? T(0) : dot(r + g * n, h, n);
      if (bias) {
        from_x += bias[g];
        from_h += bias[all + g];
      }
      if (rlx::lane_id() != 0) continue;
      pre[g] = candidate ? from_x : from_x + from_h;
      if (candidate) spare[g - n] = from_h;  // the second half of spare
    }
    __syncthreads();
    if constexpr (RLX_KIND == gru) {
      for (long long j = threadIdx.x; j < n; j += RLX_BLOCK) {
        spare[j] = activate(gates[0], clip, pre[n + j]) * h[j];
      }
      __syncthreads();
      if constexpr (!RLX_LINEAR_BEFORE_RESET) {
        for (long long j = rlx::warp_id(); j < n; j += warps) {
          const T product = dot(r + (2 * n + j) * n, spare, n);
          if (rlx::lane_id() == 0) pre[2 * n + j] += product + spare[n + j];
        }
        __syncthreads();
      }
    }
    for (long long j = threadIdx.x; j < n; j += RLX_BLOCK) {
      if constexpr (RLX_KIND == lstm) {
        const T pi = peephole ? peephole[j] * c[j] : T(0);
        const T pf = peephole ? peephole[2 * n + j] * c[j] : T(0);
        const T i = activate(gates[0], clip, pre[j] + pi);
        const T f = p.input_forget ? T(1) - i : activate(gates[0], clip, pre[2 * n + j] + pf);
        c[j] = f * c[j] + i * activate(gates[1], clip, pre[3 * n + j]);
        const T po = peephole ? peephole[n + j] * c[j] : T(0);
        h[j] = activate(gates[0], clip, pre[n + j] + po) * activate(gates[2], clip, c[j]);
      } else if constexpr (RLX_KIND == gru) {
        T candidate = pre[2 * n + j];
        if constexpr (RLX_LINEAR_BEFORE_RESET) {
          candidate += activate(gates[0], clip, pre[n + j]) * spare[n + j];
        }
        candidate = activate(gates[1], clip, candidate);
        const T z = activate(gates[0], clip, pre[j]);
        h[j] = (T(1) - z) * candidate + z * h[j];
      } else {
        h[j] = activate(gates[0], clip, pre[j]);
      }
      if (y) y[j] = h[j];
    }
    __syncthreads();
  }
  for (long long j = threadIdx.x; j < n; j += RLX_BLOCK) {
    if (p.y_h) static_cast<T*>(p.y_h)[state_at + j] = h[j];
    if (p.y_c) static_cast<T*>(p.y_c)[state_at + j] = c[j];
  }
}
