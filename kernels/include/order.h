// A key for each value: unsigned integers in the same order, NaN above all, both zeros equal.
#pragma once

#include "kernels/include/element.h"

namespace rlx {

template <class T> RLX_FN unsigned long long order_key(T x) {
  constexpr scalar::Kind kind = scalar::Traits<T>::kind;
  if constexpr (kind == scalar::Kind::boolean) {
    return x;
  } else if constexpr (kind == scalar::Kind::integer) {
    if constexpr (scalar::is_signed<T>) return (unsigned long long)((long long)(x)) ^ (1ull << 63);
    else return x;
  } else if constexpr (sizeof(T) == 4) {
    if (x != x) return 0xffffffffull;
    const unsigned bits = scalar::bits_of(x == 0 ? T(0) : x);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  } else {
    if (x != x) return ~0ull;
    const auto bits = __builtin_bit_cast(unsigned long long, x == 0 ? T(0) : x);
    return bits >> 63 ? ~bits : bits | (1ull << 63);
  }
}

}  // namespace rlx
