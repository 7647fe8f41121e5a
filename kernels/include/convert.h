// Conversions between compute types: ONNX Cast on values, exact where the target holds them.
#pragma once

#include "kernels/include/small_floats.h"
#include "kernels/include/types.h"

#if defined(__CUDACC_RTC__)
#define RLX_METHOD static __device__ __forceinline__
#else
#define RLX_METHOD [[gnu::always_inline]] static inline
#endif

namespace rlx {

// Truncates; what is out of range becomes the nearest limit and NaN becomes 0.
template <class To, class From> RLX_FN To saturate_to(From x) {
  constexpr int bits = 8 * int(sizeof(To)) - scalar::is_signed<To>;
  constexpr From above = From(1ull << (bits - 1)) * 2;  // the first value too large
  constexpr To highest = scalar::is_signed<To> ? To(~(1ull << bits)) : To(-1);
  constexpr From lowest = scalar::is_signed<To> ? -above : From(0);
  if (x != x) return To(0);
  if (x >= above) return highest;
  return x > lowest ? To(x) : To(lowest);
}

template <class To, class From> RLX_FN To convert(From x) {
  constexpr scalar::Kind from = scalar::Traits<From>::kind, to = scalar::Traits<To>::kind;
  using enum scalar::Kind;
  if constexpr (from == complex && to == complex) {
    return {decltype(To::re)(x.re), decltype(To::re)(x.im)};
  } else if constexpr (from == complex && to == boolean) {
    return (x.re != 0) | (x.im != 0);
  } else if constexpr (from == complex) {
    return convert<To>(x.re);
  } else if constexpr (to == complex) {
    return {convert<decltype(To::re)>(x), 0};
  } else if constexpr (to == boolean) {
    return x != 0;
  } else if constexpr (from == real && to == integer) {
    return saturate_to<To>(x);
  } else {
    return To(x);
  }
}

// x as a float that a later rounding to a small float treats as the exact value.
template <class T> RLX_FN float to_odd_float(T x) {
  constexpr scalar::Kind kind = scalar::Traits<T>::kind;
  if constexpr (kind == scalar::Kind::complex) {
    return to_odd_float(x.re);
  } else if constexpr (kind == scalar::Kind::integer && sizeof(T) == 8) {
    const bool negative = x < 0;
    unsigned long long size = negative ? 0ull - (unsigned long long)(x) : (unsigned long long)(x);
    if (size >> 53) size = (size & ~0x7ffull) | ((size & 0x7ff) != 0 ? 0x800 : 0);
    return scalar::to_odd(negative ? -double(size) : double(size));
  } else {
    return scalar::to_odd(double(x));
  }
}

}  // namespace rlx
