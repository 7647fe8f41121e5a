// exp, log, tanh, erf and activations on float or on a vector of floats (GCC vector extensions).
//
// V is float or `float __attribute__((vector_size(n)))`; the including file's instruction set
// decides the code, so everything here is static: each file keeps its own copy. The constants
// are minimax fits of relative error; largest errors found are stated in units in the last place.
#pragma once

#include <bit>
#include <cstdint>

namespace rlx::cpu::vecmath {

template <class V>
struct Lanes {
  using Int = decltype(V{} < V{});  // int32 in as many lanes
};
template <>
struct Lanes<float> {
  using Int = int32_t;
};

template <class V>
using Int = typename Lanes<V>::Int;

// `value` in every lane.
template <class V>
[[gnu::always_inline]] static inline V all(float value) {
  return value - V{};
}

template <class V>
[[gnu::always_inline]] static inline Int<V> bits(V x) {
  return std::bit_cast<Int<V>>(x);
}

template <class V>
[[gnu::always_inline]] static inline V from_bits(Int<V> x) {
  return std::bit_cast<V>(x);
}

template <class V>
[[gnu::always_inline]] static inline V abs(V x) {
  return from_bits<V>(bits(x) & 0x7fffffff);
}

// `magnitude` (not negative) with the sign of x.
template <class V>
[[gnu::always_inline]] static inline V with_sign(V magnitude, V x) {
  return from_bits<V>(bits(magnitude) | (bits(x) & INT32_MIN));
}

// 2 to the power n, for n in [-126, 127].
template <class V>
[[gnu::always_inline]] static inline V power_of_two(Int<V> n) {
  return from_bits<V>((n + 127) << 23);
}

// exp(x + tail) for a tail below one unit in the last place of x or so.
template <class V>
[[gnu::always_inline]] static inline V exp_sum(V x, V tail) {
  x = x > 89.0f ? all<V>(89.0f) : x;  // infinity from here; a NaN passes
  x = x < -104.0f ? all<V>(-104.0f) : x;
  const float round = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const V shifted = x * 1.44269504f + round;
  const Int<V> n = bits(shifted) - bits(all<V>(round));
  const V whole = shifted - round;
  const V r = ((x - whole * 0.693359375f) + whole * 2.12194440e-4f) + tail;
  V p = r * 0.00138131448f + 0.00836941879f;
  p = p * r + 0.041668456f;
  p = p * r + 0.166665152f;
  p = p * r + 0.49999994f;
  p = p * r * r + r + 1.0f;
  // Two factors: 2^128 and the powers below 2^-126 are no normal numbers.
  const Int<V> half = n >> 1;
  return p * power_of_two<V>(half) * power_of_two<V>(n - half);
}

// 1 ulp.
template <class V>
[[gnu::always_inline]] static inline V exp(V x) {
  return exp_sum(x, V{});
}

// 1 ulp; -inf for 0, NaN below.
template <class V>
[[gnu::always_inline]] static inline V log(V x) {
  const auto tiny = x < 1.17549435e-38f;
  const V scaled = tiny ? x * 8388608.0f : x;
  // Exponent and mantissa of scaled = 2^e * m with m in [sqrt(1/2), sqrt(2)).
  const Int<V> above = bits(scaled) - 0x3f3504f3;
  const Int<V> e = (above >> 23) - (tiny ? Int<V>{} + 23 : Int<V>{});
  const V f = from_bits<V>((above & 0x007fffff) + 0x3f3504f3) - 1.0f;
  V p = f * -0.0763448849f + 0.127615735f;
  p = p * f + -0.13160184f;
  p = p * f + 0.142017588f;
  p = p * f + -0.166233569f;
  p = p * f + 0.200012267f;
  p = p * f + -0.250008196f;
  p = p * f + 0.333333313f;
  // Small whole numbers become floats by the same shift as in exp.
  const V whole = from_bits<V>(e + bits(all<V>(12582912.0f))) - 12582912.0f;
  const V square = f * f;
  const V low = p * square * f + whole * -2.12194440e-4f;
  const V result = (low - square * 0.5f) + f + whole * 0.693359375f;
  const V infinity = from_bits<V>(Int<V>{} + 0x7f800000);
  const V special = x == 0.0f ? -infinity : x < 0.0f ? from_bits<V>(Int<V>{} + 0x7fc00000) : x;
  const auto regular = bits(x) > 0 && x < infinity;
  return regular ? result : special;
}

// 2 ulp.
template <class V>
[[gnu::always_inline]] static inline V tanh(V x) {
  const V size = abs(x), square = x * x;
  V p = square * -0.00566697773f + 0.0206061769f;
  p = p * square + -0.0537300073f;
  p = p * square + 0.133313313f;
  p = p * square + -0.333332777f;
  const V small = p * square * size + size;
  const V large = 1.0f - 2.0f / (exp(size + size) + 1.0f);
  return with_sign(size < 0.625f ? small : large, x);
}

// erf for |x| < 0.9.
template <class V>
[[gnu::always_inline]] static inline V erf_near_zero(V x) {
  const V square = x * x;
  V p = square * -0.000609040202f + 0.00501197251f;
  p = p * square + -0.0267789159f;
  p = p * square + 0.112821408f;
  p = p * square + -0.376125246f;
  p = p * square + 1.12837911f;
  return p * x;
}

// 1 - erf(t) for t >= 0.88, of small *relative* error (5 ulp).
// t * t must be scale * x * x, where scale is a power of two: x may be known more exactly.
template <class V>
[[gnu::always_inline]] static inline V erfc_tail(V t, V x, float scale) {
  x = x > 16.0f ? all<V>(16.0f) : x;
  const V u = 1.0f / (t * 0.5f + 1.0f);
  V p = u * 0.0740353167f + -0.163900122f;
  p = p * u + -0.00258368929f;
  p = p * u + 0.125321716f;
  p = p * u + 0.149329826f;
  p = p * u + 0.255310059f;
  p = p * u + 0.280611813f;
  p = p * u + 0.282233089f;
  p = p * u + -5.36333846e-06f;
  // x * x as an exact square plus a rest, so that exp loses nothing.
  const V high = from_bits<V>(bits(x) & ~0xfff);
  return p * exp_sum(high * high * -scale, (high - x) * (high + x) * scale);
}

// 3 ulp.
template <class V>
[[gnu::always_inline]] static inline V erf(V x) {
  const V size = abs(x);
  return size < 0.9f ? erf_near_zero(x) : with_sign(1.0f - erfc_tail(size, size, 1.0f), x);
}

// 3 ulp where exp(-x) is finite.
template <class V>
[[gnu::always_inline]] static inline V sigmoid(V x) {
  return 1.0f / (exp(-x) + 1.0f);
}

// Rounded twice, as a written-out x * sigmoid(x) is: recognising that changes no bit, which would
// else change levels of a quantisation behind it.
template <class V>
[[gnu::always_inline]] static inline V silu(V x) {
  return x * sigmoid(x);
}

// x * (1 + erf(x / sqrt(2))) / 2 without that form's cancellation for negative x: 8 ulp.
template <class V>
[[gnu::always_inline]] static inline V gelu_erf(V x) {
  const V t = x * 0.707106781f, half = x * 0.5f;
  const V finite = half > 64.0f ? all<V>(64.0f) : half;  // for x = infinity; the tail is 0 there
  const V tail = finite * erfc_tail(abs(t), abs(x), 0.5f);
  const V far = x < 0.0f ? tail : x - tail;
  return abs(t) < 0.9f ? half * erf_near_zero(t) + half : far;
}

// x * (1 + tanh(v)) / 2 = x / (1 + exp(-2v)), v = sqrt(2 / pi) * (x + 0.044715 x^3).
template <class V>
[[gnu::always_inline]] static inline V gelu_tanh(V x) {
  const V v = (x * x * 0.044715f + 1.0f) * x * -1.59576912f;
  return x / (exp(v) + 1.0f);
}

}  // namespace rlx::cpu::vecmath
