// The exponential behind a subtracted maximum, as softmax and attention take it.
#pragma once

#include "cpu/kernels/vecmath.h"

namespace rlx::cpu::vecmath {

// exp(x) for x <= 0, as behind a subtracted maximum: 0 below -87.3 instead of subnormals. 2 ulp.
template <class V>
[[gnu::always_inline]] static inline V exp_falling(V x) {
  const auto tiny = x < -87.3f;
  x = x < -88.0f ? all<V>(-88.0f) : x;  // a NaN passes
  const float round = 12582912.0f + 127.0f;  // adding it leaves the exponent's bits below
  const V shifted = x * 1.44269504f + round;
  const V whole = shifted - round;
  const V r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
  V p = r * 0.00138131448f + 0.00836941879f;
  p = p * r + 0.041668456f;
  p = p * r + 0.166665152f;
  p = p * r + 0.49999994f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const V value = p * from_bits<V>(bits(shifted) << 23);
  return tiny ? V{} : value;
}

}  // namespace rlx::cpu::vecmath
