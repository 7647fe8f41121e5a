// How recurrent layers of 8-bit weights round x and the state.
#pragma once

#include "kernels/include/recurrent_row.h"

namespace rlx::recurrent {

// How DynamicQuantizeLinear makes levels of floats: by their range, with 0 in it.
struct Levels {
  float scale, zero;
};

RLX_FN float cut(float x) { return x > 0 ? (x < 255 ? x : 255.0f) : 0.0f; }

// Of what the block's threads have met; zero counts as met. The whole block finds them together.
RLX_FN Levels levels_between(float low, float high) {
  __shared__ float parts[2][warps];
  low = group_reduce<RLX_BLOCK>(low, parts[0], [](float a, float b) { return b < a ? b : a; });
  high = group_reduce<RLX_BLOCK>(high, parts[1], [](float a, float b) { return b > a ? b : a; });
  const float scale = (high - low) / 255.0f;
  const Levels levels = {scale > 0 ? scale : 1.0f, 0};
  return {levels.scale, scalar::rint(cut(-low / levels.scale))};
}

RLX_FN void widen(float& low, float& high, float x) {
  low = x < low ? x : low;
  high = x > high ? x : high;
}

// Of x in all steps.
RLX_FN Levels levels_of_input(const Recurrent& p) {
  const S* x = static_cast<const S*>(p.x);
  float low = 0, high = 0;
  for (long long i = threadIdx.x; i < p.steps * p.batch * p.input; i += RLX_BLOCK) {
    widen(low, high, float(load(x + i)));
  }
  return levels_between(low, high);
}

// Of the states, given by state(b), of all rows that have a step t.
template <class F> RLX_FN Levels levels_of_states(const Recurrent& p, long long t, F state) {
  float low = 0, high = 0;
  for (long long b = 0; b < p.batch; ++b) {
    if (t >= length_of(p, b)) continue;
    const T* const h = state(b);
    for (long long j = threadIdx.x; j < p.hidden; j += RLX_BLOCK) widen(low, high, float(h[j]));
  }
  return levels_between(low, high);
}

// The level of x, less that of 0.
RLX_FN short level_of(const Levels& levels, float x) {
  const float far = x / levels.scale;
  const float near = far > -512 ? (far < 512 ? far : 512.0f) : -512.0f;
  return short(cut(scalar::rint(near) + levels.zero) - levels.zero);
}

// What lies behind the states: levels.
RLX_FN T* behind_states(const Recurrent& p) {
  return static_cast<T*>(p.state) + p.batch * p.directions * (gate_count + 4) * p.hidden;
}

}  // namespace rlx::recurrent
