// The exponential behind a subtracted maximum, as softmax and attention take it.
#pragma once

#include "cpu/kernels/vecmath.h"

namespace rlx::cpu::vecmath {

// exp(x) for x <= 0: 3 ulp, but 0 below -87.3 instead of subnormals; a NaN passes.
template <class V>
[[gnu::always_inline]] static inline V exp_falling(V x) {
  const float round = 12582912.0f + 127.0f;  // adding it leaves the exponent's bits at the end
  const V shifted = x * 1.44269504f + round;
  const V whole = shifted - round;
  const V r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
  V p = r * 0.00829014421f + 0.0418988519f;
  p = p * r + 0.166676439f;
  p = p * r + 0.499991428f;
  p = p * r + 0.999999704f;
  p = p * r + 1.0f;
  const V value = p * from_bits<V>(bits(shifted) << 23);
  return x < -87.3f ? V{} : value;  // which is anything there
}

}  // namespace rlx::cpu::vecmath
