// Recurrent layers: a block walks the steps of one row of the batch in one direction, or, with
// 8-bit weights, of all rows: what the state is rounded by spans them.
#include "kernels/include/element.h"
#include "kernels/include/scalar_ops.h"
#include "kernels/include/warp.h"
#include "kernels/params/recurrent.h"

namespace {

using S = RLX_T;
using T = rlx::ComputeOf<S>;  // of the state, from step to step
using W = RLX_W;  // of the weights: S, or 8-bit integers with scales and zero points
using rlx::params::Gate;
using rlx::params::GateFunction;
using rlx::params::Recurrent;
enum { lstm, gru, rnn };
constexpr int warps = RLX_BLOCK / rlx::warp_size;
constexpr bool rounded = sizeof(W) == 1;
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
  const S *bias, *peephole;
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

RLX_FN T value_of(const S* at) { return rlx::load(at); }
// State that halves are computed with.
template <class V> RLX_FN T value_of(const V* at) { return *at; }

// A warp's product of row `gate` of w (operand 0) or r (1) with x.
template <class X>
RLX_FN T dot(const Recurrent& p, const Row& row, int operand, long long gate, const X* x) {
  const long long n = operand == 0 ? p.input : p.hidden;
  const W* weights = (operand == 0 ? row.w : row.r) + gate * n;
  T sum = 0;
  for (long long i = rlx::lane_id(); i < n; i += rlx::warp_size) {
    sum += T(rlx::load(weights + i)) * value_of(x + i);
  }
  return rlx::warp_reduce(sum, added);
}

// The products of a step with x and with the state.
RLX_FN void products(const Recurrent& p, const Row& row, const S* x) {
  const long long n = p.hidden, all = gate_count * n;
  for (long long g = rlx::warp_id(); g < all; g += warps) {
    const bool candidate = RLX_KIND == gru && g >= 2 * n;
    T from_x = dot(p, row, 0, g, x);
    T from_h = candidate && !RLX_LINEAR_BEFORE_RESET ? T(0) : dot(p, row, 1, g, row.h);
    if (row.bias) {
      from_x += rlx::load(row.bias + g);
      from_h += rlx::load(row.bias + all + g);
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
    const auto peep = [&](long long k) {
      return row.peephole ? rlx::load(row.peephole + k) * row.c[j] : T(0);
    };
    const T pi = peep(j), pf = peep(2 * n + j);
    const T i = gate(0, pre[j] + pi);
    const T f = p.input_forget ? T(1) - i : gate(0, pre[2 * n + j] + pf);
    row.c[j] = f * row.c[j] + i * gate(1, pre[3 * n + j]);
    row.h[j] = gate(0, pre[n + j] + peep(n + j)) * gate(2, row.c[j]);
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

RLX_FN long long length_of(const Recurrent& p, long long b) {
  const long long length = p.lengths ? p.lengths[b] : p.steps;
  if (length >= 0 && length <= p.steps) return length;
  if (threadIdx.x == 0) atomicOr(p.fault, 1ull);
  return 0;
}

RLX_FN void begin(const Recurrent& p, const Row& row, long long state_at) {
  for (long long j = threadIdx.x; j < p.hidden; j += RLX_BLOCK) {
    row.h[j] = p.initial_h ? rlx::load(static_cast<const S*>(p.initial_h) + state_at + j) : T(0);
    row.c[j] = p.initial_c ? rlx::load(static_cast<const S*>(p.initial_c) + state_at + j) : T(0);
  }
}

RLX_FN void end(const Recurrent& p, const Row& row, long long state_at) {
  for (long long j = threadIdx.x; j < p.hidden; j += RLX_BLOCK) {
    if (p.y_h) rlx::store(static_cast<S*>(p.y_h) + state_at + j, row.h[j]);
    if (p.y_c) rlx::store(static_cast<S*>(p.y_c) + state_at + j, row.c[j]);
  }
}

// Steps behind the row's length give zeros and leave the state as it is.
RLX_FN void finish_step(const Recurrent& p, const Row& row, int direction, long long b,
                        long long t, bool active) {
  S* y = output_of(p, direction, b, t);
  for (long long j = threadIdx.x; j < p.hidden; j += RLX_BLOCK) {
    if (active) update(p, row, j);
    if (y) rlx::store(y + j, active ? row.h[j] : T(0));
  }
}

RLX_FN void walk_row(const Recurrent& p, int direction, long long b) {
  const Row row = row_of(p, direction, b);
  const long long length = length_of(p, b);
  begin(p, row, state_of(p, direction, b));
  __syncthreads();
  const bool backwards = direction == 1 || p.reverse;
  for (long long i = 0; i < p.steps; ++i) {
    const long long t = backwards ? p.steps - 1 - i : i;
    if (t < length) {
      products(p, row, input_of(p, b, t));
      if constexpr (RLX_KIND == gru) reset(p, row);
    }
    finish_step(p, row, direction, b, t, t < length);
    __syncthreads();
  }
  end(p, row, state_of(p, direction, b));
}

// How DynamicQuantizeLinear makes levels of floats: by their range, with 0 in it.
struct Levels {
  float scale, zero;
};

RLX_FN float cut(float x) { return x > 0 ? (x < 255 ? x : 255.0f) : 0.0f; }

// Of value(i) for all i below `count`; the whole block finds them together.
template <class F> RLX_FN Levels levels_of(long long count, F value) {
  __shared__ float parts[2][warps];
  float low = 0, high = 0;
  for (long long i = threadIdx.x; i < count; i += RLX_BLOCK) {
    const float x = value(i);
    low = x < low ? x : low;
    high = x > high ? x : high;
  }
  low = rlx::group_reduce<RLX_BLOCK>(low, parts[0], [](float a, float b) { return b < a ? b : a; });
  high = rlx::group_reduce<RLX_BLOCK>(high, parts[1],
                                      [](float a, float b) { return b > a ? b : a; });
  const float scale = (high - low) / 255.0f;
  const Levels levels = {scale > 0 ? scale : 1.0f, 0};
  return {levels.scale, rlx::scalar::rint(cut(-low / levels.scale))};
}

// The level of x, less that of 0.
RLX_FN short level_of(const Levels& levels, float x) {
  const float far = x / levels.scale;
  const float near = far > -512 ? (far < 512 ? far : 512.0f) : -512.0f;
  return short(cut(rlx::scalar::rint(near) + levels.zero) - levels.zero);
}

// A warp's exact product of levels with row `gate` of the weights, as the float that it means.
RLX_FN T dot_levels(const Recurrent& p, const Row& row, int operand, long long gate,
                    const short* levels, float scale) {
  const long long n = operand == 0 ? p.input : p.hidden;
  const W* weights = (operand == 0 ? row.w : row.r) + gate * n;
  const W* zeros = row.zero[operand];
  const int zero = zeros ? int(rlx::load(zeros + (p.zero_each[operand] ? gate : 0))) : 0;
  int sum = 0;
  for (long long i = rlx::lane_id(); i < n; i += rlx::warp_size) {
    sum += (int(rlx::load(weights + i)) - zero) * levels[i];
  }
  sum = rlx::warp_reduce(sum, rlx::add_values<int>);
  return T(float(sum) * (scale * row.scale[operand][p.scale_each[operand] ? gate : 0]));
}

// The gates of every row that has a step t, by rounded x and rounded states.
RLX_FN void rounded_products(const Recurrent& p, int direction, long long t, const Levels& of_x,
                             short* levels) {
  const long long n = p.hidden, all = gate_count * n, width = p.input + n;
  const Levels of_h = levels_of(p.batch * n, [&](long long i) {
    return t < length_of(p, i / n) ? float(row_of(p, direction, i / n).h[i % n]) : 0.0f;
  });
  for (long long i = threadIdx.x; i < p.batch * width; i += RLX_BLOCK) {
    const long long b = i / width, j = i % width;
    if (t >= length_of(p, b)) continue;
    levels[i] = j < p.input ? level_of(of_x, float(rlx::load(input_of(p, b, t) + j)))
                            : level_of(of_h, float(row_of(p, direction, b).h[j - p.input]));
  }
  __syncthreads();
  for (long long k = rlx::warp_id(); k < p.batch * all; k += warps) {
    const long long b = k / all, g = k % all;
    if (t >= length_of(p, b)) continue;
    const Row row = row_of(p, direction, b);
    const short* own = levels + b * width;
    T sum = dot_levels(p, row, 0, g, own, of_x.scale);
    if (row.bias) sum += rlx::load(row.bias + g) + rlx::load(row.bias + all + g);
    sum += dot_levels(p, row, 1, g, own + p.input, of_h.scale);
    if (rlx::lane_id() == 0) row.pre[g] = sum;
  }
  __syncthreads();
}

RLX_FN void walk_rounded(const Recurrent& p, int direction) {
  for (long long b = 0; b < p.batch; ++b) {
    begin(p, row_of(p, direction, b), state_of(p, direction, b));
  }
  const S* x = static_cast<const S*>(p.x);
  const Levels of_x = levels_of(p.steps * p.batch * p.input,
                                [&](long long i) { return float(rlx::load(x + i)); });
  const long long rows = p.batch * p.directions, each = p.batch * (p.input + p.hidden);
  short* levels = reinterpret_cast<short*>(static_cast<T*>(p.state) +
                                           rows * (gate_count + 4) * p.hidden) + direction * each;
  __syncthreads();
  const bool backwards = direction == 1 || p.reverse;
  for (long long i = 0; i < p.steps; ++i) {
    const long long t = backwards ? p.steps - 1 - i : i;
    rounded_products(p, direction, t, of_x, levels);
    for (long long b = 0; b < p.batch; ++b) {
      finish_step(p, row_of(p, direction, b), direction, b, t, t < length_of(p, b));
    }
    __syncthreads();
  }
  for (long long b = 0; b < p.batch; ++b) {
    end(p, row_of(p, direction, b), state_of(p, direction, b));
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(RLX_BLOCK) recurrent(const Recurrent p) {
  const int direction = int(rlx::block_rank() % p.directions);
  const long long b = (long long)(rlx::block_rank() / p.directions);
  if constexpr (rounded) {
    if (b == 0) walk_rounded(p, direction);
  } else {
    if (b < p.batch) walk_row(p, direction, b);
  }
}
