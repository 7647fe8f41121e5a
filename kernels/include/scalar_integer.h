// Scalar functions on integers and bool: exact, wrapping, and never trapping.
#pragma once

#include "kernels/include/types.h"

namespace rlx::scalar {

template <Integer T> RLX_FN T add(T a, T b) { return T(Wide<T>(a) + Wide<T>(b)); }
template <Integer T> RLX_FN T sub(T a, T b) { return T(Wide<T>(a) - Wide<T>(b)); }
template <Integer T> RLX_FN T mul(T a, T b) { return T(Wide<T>(a) * Wide<T>(b)); }
template <Integer T> RLX_FN T neg(T x) { return T(Wide<T>(0) - Wide<T>(x)); }
template <Integer T> RLX_FN T abs(T x) {
  if constexpr (is_signed<T>) return x < 0 ? neg(x) : x;
  return x;
}
template <Integer T> RLX_FN T sign(T x) { return T((x > 0) - (x < 0)); }

// Truncates; 0 for a zero divisor; the least number by -1 wraps.
template <Integer T> RLX_FN T div(T a, T b) {
  if (b == 0) return 0;
  if constexpr (is_signed<T>) {
    if (b == T(-1)) return neg(a);
  }
  return T(a / b);
}
// The remainder with the sign of the dividend; 0 for a zero divisor.
template <Integer T> RLX_FN T fmod(T a, T b) {
  if (b == 0) return 0;
  if constexpr (is_signed<T>) {
    if (b == T(-1)) return 0;
  }
  return T(a % b);
}
// The remainder with the sign of the divisor; 0 for a zero divisor.
template <Integer T> RLX_FN T mod(T a, T b) {
  const T r = fmod(a, b);
  if constexpr (is_signed<T>) return r != 0 && (r < 0) != (b < 0) ? T(r + b) : r;
  return r;
}
// Wraps as repeated products do; a negative exponent gives the truncated fraction.
template <Integer T> RLX_FN T pow(T base, T exponent) {
  if constexpr (is_signed<T>) {
    if (exponent < 0) {
      if (base == T(-1)) return exponent & 1 ? base : T(1);
      return base == 1 ? T(1) : T(0);
    }
  }
  T result = 1;
  for (; exponent != 0; exponent = T(exponent >> 1)) {
    if (exponent & 1) result = mul(result, base);
    base = mul(base, base);
  }
  return result;
}

template <Integer T> RLX_FN T bitwise_not(T x) { return T(~x); }
template <Integer T> RLX_FN T bitwise_and(T a, T b) { return T(a & b); }
template <Integer T> RLX_FN T bitwise_or(T a, T b) { return T(a | b); }
template <Integer T> RLX_FN T bitwise_xor(T a, T b) { return T(a ^ b); }
// A count of the width or more shifts every bit out; the sign fills in from the left.
template <Integer T> RLX_FN T shift_left(T a, T count) {
  const bool inside = Unsigned<T>(count) < Unsigned<T>(width<T>);
  return inside ? T(Wide<T>(a) << Unsigned<T>(count)) : T(0);
}
template <Integer T> RLX_FN T shift_right(T a, T count) {
  const bool inside = Unsigned<T>(count) < Unsigned<T>(width<T>);
  const T moved = T(a >> (inside ? Unsigned<T>(count) : Unsigned<T>(width<T> - 1)));
  return inside || is_signed<T> ? moved : T(0);
}

template <Integer T> RLX_FN T min(T a, T b) { return a < b ? a : b; }
template <Integer T> RLX_FN T max(T a, T b) { return a > b ? a : b; }

template <Boolean T> RLX_FN T min(T a, T b) { return a & b; }
template <Boolean T> RLX_FN T max(T a, T b) { return a | b; }
template <Boolean T> RLX_FN bool lnot(T x) { return !x; }
template <Boolean T> RLX_FN bool land(T a, T b) { return a & b; }
template <Boolean T> RLX_FN bool lor(T a, T b) { return a | b; }
template <Boolean T> RLX_FN bool lxor(T a, T b) { return a != b; }
template <Boolean T> RLX_FN bool eq(T a, T b) { return a == b; }
template <Boolean T> RLX_FN bool ne(T a, T b) { return a != b; }

}  // namespace rlx::scalar
