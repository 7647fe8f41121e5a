// Bodies of the loops that cast between compute types.
#pragma once

#include "cpu/kernels/region_loops.h"
#include "cpu/kernels/region_types.h"
#include "kernels/include/small_floats.h"

namespace rlx::cpu {
namespace {

using scalar::Integer;
using scalar::Kind;
using scalar::Real;
using scalar::Traits;

// Truncates; what is out of range becomes the nearest limit and NaN becomes 0.
template <Integer To, Real From>
To saturate(From x) {
  constexpr int bits = 8 * int(sizeof(To)) - scalar::is_signed<To>;
  if constexpr (sizeof(To) <= 2) {  // the limits are values of From: all but the end stays in lanes
    constexpr From low = scalar::is_signed<To> ? -From(1 << bits) : From(0);
    constexpr From high = From((1 << bits) - 1);
    From y = x > low ? x : low;
    y = y < high ? y : high;
    if constexpr (scalar::is_signed<To>) y = x == x ? y : From(0);
    return To(int32_t(y));
  }
  constexpr From above = From(uint64_t{1} << (bits - 1)) * 2;  // the first value too large
  constexpr To highest = scalar::is_signed<To> ? To(~(uint64_t{1} << bits)) : To(-1);
  constexpr From lowest = scalar::is_signed<To> ? -above : From(0);
  // The largest From below `above`, or any whose truncation is `highest`.
  constexpr int spare = bits - (sizeof(From) == 4 ? 24 : 53);
  constexpr From inside = above - From(spare > 0 ? uint64_t{1} << spare : 1);
  From y = x > lowest ? x : lowest;  // a NaN becomes the lowest here, 0 below
  y = y < above ? y : inside;
  const To z = To(y);
  return x >= above ? highest : x != x ? To(0) : z;
}

template <class To, class From>
To convert(From x) {
  constexpr Kind from = Traits<From>::kind, to = Traits<To>::kind;
  if constexpr (from == Kind::complex && to == Kind::complex) {
    return {decltype(To::re)(x.re), decltype(To::re)(x.im)};
  } else if constexpr (from == Kind::complex && to == Kind::boolean) {
    return (x.re != 0) | (x.im != 0);
  } else if constexpr (from == Kind::complex) {
    return convert<To>(x.re);
  } else if constexpr (to == Kind::complex) {
    return {convert<decltype(To::re)>(x), 0};
  } else if constexpr (to == Kind::boolean) {
    return x != 0;
  } else if constexpr (from == Kind::real && to == Kind::integer) {
    return saturate<To>(x);
  } else {
    return To(x);
  }
}

// A 64-bit integer as a double that a later rounding treats as the exact value.
template <Integer T>
double wide_to_odd(T x) {
  const bool negative = x < 0;
  uint64_t size = negative ? uint64_t{0} - uint64_t(x) : uint64_t(x);
  if (size >> 53) size = (size & ~uint64_t{0x7ff}) | ((size & 0x7ff) != 0 ? 0x800 : 0);
  return negative ? -double(size) : double(size);
}

template <class T>
float convert_to_odd(T x) {
  if constexpr (Traits<T>::kind == Kind::complex) {
    return convert_to_odd(x.re);
  } else if constexpr (sizeof(T) == 8 && Traits<T>::kind == Kind::integer) {
    return scalar::to_odd(wide_to_odd(x));
  } else {
    return scalar::to_odd(double(x));
  }
}

// out[i] = F{}(x[i])
template <class To, class From, class F>
void map(void* dst, const void* a, const void*, const void*, int64_t n) {
  auto* out = static_cast<Memory<To>*>(dst);
  auto* x = static_cast<const Memory<From>*>(a);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = Memory<To>(F{}(From(x[i])));
}

template <class To, class From, class F>
Loop loop_of(F) {
  return &map<To, From, F>;
}

template <class F>
Loop with_any(DType type, F f) {
  Loop loop = with_real(type, Loop{}, f);
  return loop ? loop : with_integer(type, Loop{}, f);
}

Loop pick_cast(DType from, DType to, bool odd) {
  return with_any(from, [=](auto source) {
    using From = typename decltype(source)::type;
    if (odd && to == DType::float32) {
      return loop_of<float, From>([](From x) { return convert_to_odd(x); });
    }
    return with_any(to, [](auto target) {
      using To = typename decltype(target)::type;
      return loop_of<To, From>([](From x) { return convert<To>(x); });
    });
  });
}

}  // namespace
}  // namespace rlx::cpu
