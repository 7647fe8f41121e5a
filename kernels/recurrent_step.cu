// One step of a recurrent layer: a warp makes one unit of the state for a tile of the batch's rows,
// so that the whole card reads the weights. Two states take turns: all units read the old one while
// the new one is written.
#include "kernels/include/recurrent_levels.h"
#include "kernels/include/vector.h"

namespace {

using namespace rlx::recurrent;

constexpr int tile = RLX_ROWS;

// What a warp works on. Units behind the last one are there to fill a block.
struct Place {
  int direction;
  long long unit, first, t;  // first: of the rows
};

RLX_FN Place place_of(const Recurrent& p) {
  const long long groups = (p.hidden + warps - 1) / warps;
  long long rank = (long long)(rlx::block_rank());
  Place at;
  at.unit = rank % groups * warps + rlx::warp_id();
  rank /= groups;
  at.direction = int(rank % p.directions);
  at.first = rank / p.directions * tile;
  at.t = step_after(p, at.direction, p.step);
  return at;
}

// Row r of the tile; where the batch has ended, its last row again.
RLX_FN long long row_at(const Recurrent& p, const Place& at, int r) {
  return at.first + r < p.batch ? at.first + r : p.batch - 1;
}

// The state after so many steps.
RLX_FN T* state_after(const Recurrent& p, const Row& row, long long steps) {
  return steps % 2 == 0 ? row.h : row.spare + p.hidden;
}

// By what x is rounded in every step.
RLX_FN Levels* levels_of_x(const Recurrent& p) {
  return reinterpret_cast<Levels*>(behind_states(p));
}

#if RLX_FORM != 0
using rlx::recurrent::value_of;
RLX_FN int value_of(const short* at) { return *at; }

// sums[r][k] += a row of the weights times x[r]; that of gate k + 1 lies `apart` behind gate k's.
template <int gates, int run, class A, int all, class X, class F>
RLX_FN void multiply(A (&sums)[tile][all], const W* weights, long long apart, long long width,
                     const X* const (&x)[tile], F weight) {
  for (long long i = rlx::lane_id() * run; i < width; i += rlx::warp_size * run) {
    W w[gates][run];
#pragma unroll
    for (int k = 0; k < gates; ++k) rlx::load_run(w[k], weights + k * apart + i);
#pragma unroll
    for (int r = 0; r < tile; ++r) {
      X values[run];
      rlx::load_run(values, x[r] + i);
#pragma unroll
      for (int e = 0; e < run; ++e) {
        const A value = value_of(&values[e]);
#pragma unroll
        for (int k = 0; k < gates; ++k) sums[r][k] += weight(k, w[k][e]) * value;
      }
    }
  }
}

// Sums over the warp; lane r is given those of row r.
template <int all, class A> RLX_FN void join(A (&own)[all], A (&sums)[tile][all]) {
#pragma unroll
  for (int r = 0; r < tile; ++r) {
#pragma unroll
    for (int k = 0; k < all; ++k) {
      const A sum = rlx::warp_reduce(sums[r][k], rlx::add_values<A>);
      if (r == 0 || rlx::lane_id() == r) own[k] = sum;
    }
  }
}

RLX_FN T value_of_weight(W w) { return T(rlx::load(&w)); }

// A unit of row b after the step, put where it is read.
RLX_FN void put(const Recurrent& p, const Row& row, const Place& at, long long b, bool active,
                const Sums& sums) {
  const long long j = at.unit;
  T h = state_after(p, row, p.step)[j];
  if (active) h = update(p, row, j, sums, h);
  state_after(p, row, p.step + 1)[j] = h;
  if (S* y = output_of(p, at.direction, b, at.t)) rlx::store(y + j, active ? h : T(0));
  if (p.step + 1 < p.steps) return;
  end_unit(p, row, state_of(p, at.direction, b), j, h);
}
#endif

}  // namespace

#if RLX_FORM == 0
// The states before the first step.
extern "C" __global__ void __launch_bounds__(RLX_BLOCK) recurrent_step(const Recurrent p) {
  const long long n = p.hidden;
  for (auto i = rlx::thread_rank(); i < (unsigned long long)(p.batch * p.directions * n);
       i += rlx::thread_count()) {
    const long long b = (long long)(i) / n / p.directions, j = (long long)(i) % n;
    const int direction = int((long long)(i) / n % p.directions);
    if (j == 0) check_length(p, b);
    begin_unit(p, row_of(p, direction, b), state_of(p, direction, b), j);
  }
  if constexpr (rounded) {
    if (rlx::block_rank() != 0) return;
    const Levels levels = levels_of_input(p);
    if (threadIdx.x == 0) *levels_of_x(p) = levels;
  }
}
#elif RLX_FORM == 1
// The products of x and the state, and, unless the reset gate goes before a product, the new unit.
extern "C" __global__ void __launch_bounds__(RLX_BLOCK) recurrent_step(const Recurrent p) {
  const Place at = place_of(p);
  if (at.unit >= p.hidden) return;
  const long long n = p.hidden, apart_x = n * p.input, apart_h = n * n;
  const S* x[tile];
  const T* h[tile];
  for (int r = 0; r < tile; ++r) {
    const long long b = row_at(p, at, r);
    x[r] = input_of(p, b, at.t);
    h[r] = state_after(p, row_of(p, at.direction, b), p.step);
  }
  const auto weight = [](int, W w) { return value_of_weight(w); };
  const Row any = row_of(p, at.direction, at.first);
  constexpr int with_h = RLX_KIND == gru ? 2 : gate_count;
  T sums[tile][gate_count] = {}, own[gate_count], candidate[1] = {};
  multiply<gate_count, RLX_RUN_X>(sums, any.w + at.unit * p.input, apart_x, p.input, x, weight);
  multiply<with_h, RLX_RUN_H>(sums, any.r + at.unit * n, apart_h, n, h, weight);
  join(own, sums);
  if constexpr (RLX_KIND == gru && RLX_LINEAR_BEFORE_RESET) {
    T candidates[tile][1] = {};
    multiply<1, RLX_RUN_H>(candidates, any.r + 2 * apart_h + at.unit * n, 0, n, h, weight);
    join(candidate, candidates);
  }
  const long long b = at.first + rlx::lane_id(), j = at.unit;
  if (rlx::lane_id() >= tile || b >= p.batch) return;
  const Row row = row_of(p, at.direction, b);
  const bool active = at.t < length_of(p, b);
  const auto bias = [&](int half, int k) {
    return row.bias ? rlx::load(row.bias + (half * gate_count + k) * n + j) : T(0);
  };
  Sums made;
  for (int k = 0; k < gate_count; ++k) {
    made.gate[k] = own[k] + bias(0, k);
    if (k < with_h) made.gate[k] += bias(1, k);
  }
  made.candidate = RLX_KIND == gru ? candidate[0] + bias(1, 2) : T(0);
  if constexpr (RLX_KIND == gru && !RLX_LINEAR_BEFORE_RESET) {
    row.spare[j] = activate(row.gates[0], row.clip, made.gate[1]) *
                   state_after(p, row, p.step)[j];
    row.pre[j] = made.gate[0];
    row.pre[2 * n + j] = made.gate[2] + made.candidate;
  } else {
    put(p, row, at, b, active, made);
  }
}
#elif RLX_FORM == 2
// GRU: the candidate's product with what the reset gate has left, and the new unit.
extern "C" __global__ void __launch_bounds__(RLX_BLOCK) recurrent_step(const Recurrent p) {
  const Place at = place_of(p);
  if (at.unit >= p.hidden) return;
  const long long n = p.hidden, j = at.unit;
  const T* left[tile];
  for (int r = 0; r < tile; ++r) left[r] = row_of(p, at.direction, row_at(p, at, r)).spare;
  const Row any = row_of(p, at.direction, at.first);
  T sums[tile][1] = {}, own[1];
  multiply<1, RLX_RUN_H>(sums, any.r + (2 * n + j) * n, 0, n, left,
                         [](int, W w) { return value_of_weight(w); });
  join(own, sums);
  const long long b = at.first + rlx::lane_id();
  if (rlx::lane_id() >= tile || b >= p.batch) return;
  const Row row = row_of(p, at.direction, b);
  Sums made = {};
  made.gate[0] = row.pre[j];
  made.gate[2] = row.pre[2 * n + j] + own[0];
  put(p, row, at, b, at.t < length_of(p, b), made);
}
#else
// 8-bit weights: x and the state are rounded, the state by the range of all rows that go on.
extern "C" __global__ void __launch_bounds__(RLX_BLOCK) recurrent_step(const Recurrent p) {
  RLX_DYNAMIC_SHARED(memory);
  const Place at = place_of(p);
  const long long n = p.hidden;
  const auto old = [&](long long b) { return state_after(p, row_of(p, at.direction, b), p.step); };
  const Levels of_x = *levels_of_x(p), of_h = levels_of_states(p, at.t, old);
  short* const h_levels = reinterpret_cast<short*>(memory);
  short* const x_levels = h_levels + (tile * n + 7) / 8 * 8;
  for (int r = 0; r < tile; ++r) {
    const T* const from = old(row_at(p, at, r));
    const S* const x = input_of(p, row_at(p, at, r), at.t);
    for (long long j = threadIdx.x; j < n; j += RLX_BLOCK) {
      h_levels[r * n + j] = level_of(of_h, float(from[j]));
    }
    for (long long j = threadIdx.x; j < p.input; j += RLX_BLOCK) {
      x_levels[r * p.input + j] = level_of(of_x, float(rlx::load(x + j)));
    }
  }
  __syncthreads();
  if (at.unit >= n) return;
  const Row any = row_of(p, at.direction, at.first);
  const short *x[tile], *h[tile];
  for (int r = 0; r < tile; ++r) x[r] = x_levels + r * p.input, h[r] = h_levels + r * n;
  int zero[2][gate_count];
  for (int o = 0; o < 2; ++o) {
    for (int k = 0; k < gate_count; ++k) {
      const W* zeros = any.zero[o];
      zero[o][k] = zeros ? int(rlx::load(zeros + (p.zero_each[o] ? k * n + at.unit : 0))) : 0;
    }
  }
  int sums[2][tile][gate_count] = {}, own[2][gate_count];
  multiply<gate_count, RLX_RUN_X>(sums[0], any.w + at.unit * p.input, n * p.input, p.input, x,
                                  [&](int k, W w) { return int(rlx::load(&w)) - zero[0][k]; });
  multiply<gate_count, RLX_RUN_H>(sums[1], any.r + at.unit * n, n * n, n, h,
                                  [&](int k, W w) { return int(rlx::load(&w)) - zero[1][k]; });
  for (int o = 0; o < 2; ++o) join(own[o], sums[o]);
  const long long b = at.first + rlx::lane_id();
  if (rlx::lane_id() >= tile || b >= p.batch) return;
  const Row row = row_of(p, at.direction, b);
  Sums made = {};
  for (int k = 0; k < gate_count; ++k) {
    const long long g = k * n + at.unit;
    const auto product = [&](int o, float scale) {
      return T(float(own[o][k]) * (scale * row.scale[o][p.scale_each[o] ? g : 0]));
    };
    made.gate[k] = product(0, of_x.scale);
    if (row.bias) {
      made.gate[k] += rlx::load(row.bias + g) + rlx::load(row.bias + gate_count * n + g);
    }
    made.gate[k] += product(1, of_h.scale);
  }
  put(p, row, at, b, at.t < length_of(p, b), made);
}
#endif
