// LinearAttention: an item runs the recurrence of a block of columns of one head's state.
#pragma once

#include "kernels/include/element.h"
#include "kernels/include/scalar_real.h"
#include "kernels/params/map.h"

namespace rlx::map {

inline constexpr int state_columns = 8;  // of an item

// What one item works on: row d of its block of the state is state + d * stride.
struct StateBlock {
  float* state;
  long long depth, stride;
  int columns;
};

// S = exp(g) S for one decay a head (wide false) or one a row; g points at the first.
template <class T> RLX_FN void decay_state(const StateBlock& s, const T* g, bool wide) {
  float factor = wide ? 1.0f : scalar::exp(float(load(g)));
  for (long long d = 0; d < s.depth; ++d) {
    if (wide) factor = scalar::exp(float(load(g + d)));
    for (int c = 0; c < s.columns; ++c) s.state[d * s.stride + c] *= factor;
  }
}

// sums = x^T S.
template <class T> RLX_FN void read_state(const StateBlock& s, const T* x, float* sums) {
  for (int c = 0; c < s.columns; ++c) sums[c] = 0;
  for (long long d = 0; d < s.depth; ++d) {
    const float factor = float(load(x + d));
    for (int c = 0; c < s.columns; ++c) sums[c] += factor * s.state[d * s.stride + c];
  }
}

// query [B, n, Hq * dk], key [B, n, H * dk], value [B, n, H * dv], past [B, H, dk, dv] float,
// decay [B, n, H * dk or H], beta [B, n, H or 1] -> y [B, n, Hq * dv], state [B, H, dk, dv] float.
// Absent: past is zero, decay 0; without beta no delta rule. ints: Hq, H; floats: scale.
// Items: B, H, blocks of dv.
template <class T> RLX_FN void linear_attention(const params::Map& p, long long item) {
  const params::MapOperand &value = p.operands[2], &past = p.operands[3], &decay = p.operands[4],
                           &beta = p.operands[5], &y = p.operands[6];
  const long long query_heads = p.ints[0], heads = p.ints[1], length = value.shape[1];
  const long long depth = p.operands[1].shape[2] / heads, width = value.shape[2] / heads;
  const long long blocks = (width + state_columns - 1) / state_columns;
  const long long first = item % blocks * state_columns, head = item / blocks % heads;
  const long long batch = item / blocks / heads, group = query_heads / heads;
  const long long at = ((batch * heads + head) * depth) * width + first;
  const int columns = int(width - first < state_columns ? width - first : state_columns);
  const StateBlock s{static_cast<float*>(p.operands[7].data) + at, depth, width, columns};
  const float* before = past.data ? static_cast<const float*>(past.data) + at : nullptr;
  for (long long d = 0; d < depth; ++d) {
    for (int c = 0; c < columns; ++c)
      s.state[d * width + c] = before ? before[d * width + c] : 0.0f;
  }
  const bool wide = decay.data && decay.shape[2] != heads;
  for (long long t = 0; t < length; ++t) {
    const long long step = batch * length + t;
    const T* k = static_cast<const T*>(p.operands[1].data) + (step * heads + head) * depth;
    const T* v = static_cast<const T*>(value.data) + (step * heads + head) * width + first;
    float added[state_columns];
    for (int c = 0; c < columns; ++c) added[c] = float(load(v + c));
    if (decay.data) {
      const T* g = static_cast<const T*>(decay.data);
      decay_state(s, g + (wide ? (step * heads + head) * depth : step * heads + head), wide);
    }
    if (beta.data) {
      float known[state_columns];
      read_state(s, k, known);
      const long long rate = step * beta.shape[2] + (beta.shape[2] == 1 ? 0 : head);
      const float b = float(load(static_cast<const T*>(beta.data) + rate));
      for (int c = 0; c < columns; ++c) added[c] = b * (added[c] - known[c]);
    }
    for (long long d = 0; d < depth; ++d) {
      const float factor = float(load(k + d));
      for (int c = 0; c < columns; ++c) s.state[d * width + c] += factor * added[c];
    }
    for (long long j = 0; j < group; ++j) {
      const long long row = step * query_heads + head * group + j;
      float sums[state_columns];
      read_state(s, static_cast<const T*>(p.operands[0].data) + row * depth, sums);
      T* to = static_cast<T*>(y.data) + row * width + first;
      for (int c = 0; c < columns; ++c)
        store(to + c, ComputeOf<T>(sums[c] * float(p.floats[0])));
    }
  }
}

}  // namespace rlx::map
