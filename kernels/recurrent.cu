// Recurrent layers: a block walks the steps of one row of the batch in one direction, or, with
// 8-bit weights, of all rows: what the state is rounded by spans them.
#include "kernels/include/recurrent_levels.h"

namespace {

using namespace rlx::recurrent;

// A warp's product of row `gate` of w (operand 0) or r (1) with x.
template <class X>
RLX_FN T dot(const Recurrent& p, const Row& row, int operand, long long gate, const X* x) {
  const long long n = operand == 0 ? p.input : p.hidden;
  const W* weights = (operand == 0 ? row.w : row.r) + gate * n;
  T sum = 0;
  for (long long i = rlx::lane_id(); i < n; i += rlx::warp_size) {
    sum += T(rlx::load(weights + i)) * value_of(x + i);
  }
  return rlx::warp_reduce(sum, rlx::add_values<T>);
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

RLX_FN void begin(const Recurrent& p, const Row& row, long long state_at) {
  for (long long j = threadIdx.x; j < p.hidden; j += RLX_BLOCK) {
    begin_unit(p, row, state_at, j);
  }
}

RLX_FN void end(const Recurrent& p, const Row& row, long long state_at) {
  for (long long j = threadIdx.x; j < p.hidden; j += RLX_BLOCK) {
    end_unit(p, row, state_at, j, row.h[j]);
  }
}

// Steps behind the row's length give zeros and leave the state as it is.
RLX_FN void finish_step(const Recurrent& p, const Row& row, int direction, long long b,
                        long long t, bool active) {
  S* y = output_of(p, direction, b, t);
  for (long long j = threadIdx.x; j < p.hidden; j += RLX_BLOCK) {
    if (active) {
      Sums sums;
      for (int k = 0; k < gate_count; ++k) sums.gate[k] = row.pre[k * p.hidden + j];
      sums.candidate = RLX_KIND == gru ? row.spare[p.hidden + j] : T(0);
      row.h[j] = update(p, row, j, sums, row.h[j]);
    }
    if (y) rlx::store(y + j, active ? row.h[j] : T(0));
  }
}

RLX_FN void walk_row(const Recurrent& p, int direction, long long b) {
  const Row row = row_of(p, direction, b);
  const long long length = length_of(p, b);
  if (threadIdx.x == 0) check_length(p, b);
  begin(p, row, state_of(p, direction, b));
  __syncthreads();
  for (long long i = 0; i < p.steps; ++i) {
    const long long t = step_after(p, direction, i);
    if (t < length) {
      products(p, row, input_of(p, b, t));
      if constexpr (RLX_KIND == gru) reset(p, row);
    }
    finish_step(p, row, direction, b, t, t < length);
    __syncthreads();
  }
  end(p, row, state_of(p, direction, b));
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
  const Levels of_h = levels_of_states(p, t, [&](long long b) {
    return row_of(p, direction, b).h;
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
    if (threadIdx.x == 0) check_length(p, b);
    begin(p, row_of(p, direction, b), state_of(p, direction, b));
  }
  const Levels of_x = levels_of_input(p);
  const long long each = p.batch * (p.input + p.hidden);
  short* levels = reinterpret_cast<short*>(behind_states(p)) + direction * each;
  __syncthreads();
  for (long long i = 0; i < p.steps; ++i) {
    const long long t = step_after(p, direction, i);
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
