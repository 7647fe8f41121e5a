// Small floats (float16, bfloat16, float8, float4) to and from float: exact, ties to even.
#pragma once

#include "kernels/include/types.h"

namespace rlx::scalar {

// What the codes beyond the finite ones mean.
enum class Special {
  ieee,       // infinities, then NaNs, in the highest exponent
  one_nan,    // no infinity; all ones is NaN (e4m3fn)
  minus_nan,  // no infinity nor -0; the code of -0 is NaN (fnuz)
  none        // finite only (e2m1)
};

template <int exponent_bits_, int mantissa_bits_, int bias_, Special special_> struct SmallFloat {
  static constexpr int exponent_bits = exponent_bits_, mantissa_bits = mantissa_bits_;
  static constexpr int bias = bias_;
  static constexpr Special special = special_;
  static constexpr unsigned sign_code = 1u << (exponent_bits + mantissa_bits);
  static constexpr unsigned infinity_code = sign_code - (1u << mantissa_bits);  // ieee
  static constexpr unsigned max_code = special == Special::ieee      ? infinity_code - 1
                                       : special == Special::one_nan ? sign_code - 2
                                                                     : sign_code - 1;
  static constexpr unsigned nan_code =
      special == Special::ieee        ? infinity_code + (1u << (mantissa_bits - 1))
      : special == Special::one_nan   ? sign_code - 1
      : special == Special::minus_nan ? sign_code
                                      : 0;
};

using Float16 = SmallFloat<5, 10, 15, Special::ieee>;
using BFloat16 = SmallFloat<8, 7, 127, Special::ieee>;
using Float8E4M3FN = SmallFloat<4, 3, 7, Special::one_nan>;
using Float8E4M3FNUZ = SmallFloat<4, 3, 8, Special::minus_nan>;
using Float8E5M2 = SmallFloat<5, 2, 15, Special::ieee>;
using Float8E5M2FNUZ = SmallFloat<5, 2, 16, Special::minus_nan>;
using Float4E2M1 = SmallFloat<2, 1, 1, Special::none>;

// The code of x. What exceeds the finite range becomes the largest finite value when saturating,
// else infinity, or NaN where there is none. No branches: loops over it vectorise.
template <class F, bool saturate> RLX_FN unsigned encode(float x) {
  constexpr int drop = 23 - F::mantissa_bits;
  constexpr unsigned least_normal = unsigned(128 - F::bias) << 23;
  // Adding this to a subnormal of F leaves its rounded code in the lowest bits.
  constexpr unsigned shifter = unsigned(128 - F::bias + drop) << 23;
  constexpr unsigned overflow = saturate || F::special == Special::none ? F::max_code
                                : F::special == Special::ieee           ? F::infinity_code
                                                                        : F::nan_code;
  const unsigned bits = bits_of(x), size = bits & 0x7fffffffu;
  if constexpr (F::bias == 127 && !saturate) {  // bfloat16 is the upper half of a float
    const unsigned half = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
    return size > 0x7f800000u ? (bits >> 16) | 0x40u : half;
  }
  const unsigned sign = (bits >> 31) * F::sign_code;
  const unsigned rounded = size + ((1u << (drop - 1)) - 1) + ((size >> drop) & 1);
  const unsigned normal = (rounded >> drop) - (unsigned(127 - F::bias) << F::mantissa_bits);
  const unsigned subnormal = bits_of(from_bits(size) + from_bits(shifter)) - shifter;
  unsigned code = size < least_normal ? subnormal : normal;
  code = size >= least_normal && code > F::max_code ? overflow : code;
  if constexpr (F::special == Special::minus_nan) {
    code = code == 0 || code == F::nan_code ? code : code | sign;
    return size > 0x7f800000u ? F::nan_code : code;
  } else {
    return (size > 0x7f800000u ? F::nan_code : code) | sign;
  }
}

// The value of a code; exact, as float holds every small float.
template <class F> RLX_FN float decode(unsigned code) {
  if constexpr (F::bias == 127) return from_bits(code << 16);
  constexpr int drop = 23 - F::mantissa_bits;
  const unsigned sign = code & F::sign_code ? 0x80000000u : 0u;
  const unsigned size = code & (F::sign_code - 1);
  // Scaling by a power of two sets the bias right and normalises subnormals.
  const float scaled = from_bits(size << drop) * from_bits(unsigned(254 - F::bias) << 23);
  unsigned bits = bits_of(scaled);
  if constexpr (F::special == Special::ieee) {
    bits = size >= F::infinity_code ? 0x7f800000u | (size - F::infinity_code) << drop : bits;
  } else if constexpr (F::special == Special::one_nan) {
    bits = size == F::nan_code ? 0x7fc00000u : bits;
  } else if constexpr (F::special == Special::minus_nan) {
    if (code == F::nan_code) return from_bits(0x7fc00000u);
  }
  return from_bits(bits | sign);
}

// float8e8m0 is a bare exponent; the sign of x is dropped. What lies outside its powers becomes
// the nearest one when saturating, else NaN.
enum class Round { up, down, nearest };

template <bool saturate> RLX_FN unsigned encode_e8m0(float x, Round mode) {
  const unsigned bits = bits_of(x), size = bits & 0x7fffffffu;
  const unsigned exponent = size >> 23, rest = size & 0x7fffffu;
  if (size > 0x7f800000u) return 0xffu;                        // NaN
  if (size > 0x7f000000u) return saturate ? 0xfeu : 0xffu;     // above 2^127
  if (size < 0x400000u) return saturate ? 0u : 0xffu;          // below 2^-127
  bool more = mode == Round::up && rest != 0;
  if (exponent == 0) more = mode == Round::up ? rest > 0x400000u : mode == Round::nearest &&
                            rest >= 0x600000u;
  else if (mode == Round::nearest) more = rest >= 0x400000u;
  return exponent + unsigned(more);
}

RLX_FN float decode_e8m0(unsigned code) {
  if (code == 0xffu) return from_bits(0x7fc00000u);
  return from_bits(code == 0 ? 0x400000u : code << 23);
}

// A double or wide integer as a float that later rounding treats as the exact value: rounded
// towards zero, and odd when inexact. It keeps more bits than any small float needs.
RLX_FN float to_odd(double x) {
  const float near = float(x);
  const double back = near;
  if (back == x || x != x) return near;
  unsigned bits = bits_of(near);
  if ((back > x) == (x > 0)) bits -= 1;  // the nearest float lies farther from zero
  return from_bits(bits | 1u);
}

}  // namespace rlx::scalar
