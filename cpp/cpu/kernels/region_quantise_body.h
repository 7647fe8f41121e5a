// The loops of QuantizeLinear, float32 to integers of at most 16 bits.
#pragma once

#include <algorithm>
#include <limits>

#include "cpu/kernels/region_loops.h"
#include "cpu/kernels/region_vector.h"
#include "cpu/kernels/vecmath.h"

namespace rlx::cpu {
namespace {

typedef int32_t Whole __attribute__((vector_size(vector_bytes)));

// To the nearest whole number, ties to even: from 2^23 on floats have no fraction.
inline Vector rounded(Vector x) {
  constexpr float whole_from = 8388608.0f;
  const Vector size = vecmath::abs(x), near = (size + whole_from) - whole_from;
  return size < whole_from ? vecmath::with_sign(near, x) : x;
}

// round(x / scale) + zero, cut to the range of To, without its fraction; a NaN becomes 0. Zero is
// any number: graphs write this out with other ones too.
template <class To>
Whole quantised(Vector x, Vector scale, Vector zero) {
  constexpr float lowest = std::numeric_limits<To>::min(), highest = std::numeric_limits<To>::max();
  const Vector level = rounded(x / scale) + zero;
  Vector cut = level > lowest ? level : Vector{} + lowest;
  cut = cut < highest ? cut : Vector{} + highest;
  return __builtin_convertvector(cut, Whole) & (level == level);
}

// Through a few numbers of 32 bits, for compilers narrow vectors well in plain loops only.
template <class To, bool one_scale>
void quantise(void* dst, const void* a, const void* b, const void* c, int64_t n) {
  constexpr int64_t few = 64;
  auto* out = static_cast<To*>(dst);
  auto *x = static_cast<const float*>(a), *scale = static_cast<const float*>(b),
       *zero = static_cast<const float*>(c);
  const Vector scale0 = Vector{} + *scale, zero0 = Vector{} + *zero;
  const auto take = [](const float* p, int64_t count) {
    return count < lanes ? load_some(p, count) : load_vector(p);
  };
  int32_t numbers[few];
  for (int64_t count; n > 0; n -= count, out += count, x += count) {
    count = std::min(n, few);
    for (int64_t i = 0; i < count; i += lanes) {
      const Vector s = one_scale ? scale0 : take(scale + i, count - i);
      const Vector z = one_scale ? zero0 : take(zero + i, count - i);
      const Whole y = quantised<To>(take(x + i, count - i), s, z);
      std::memcpy(numbers + i, &y, sizeof y);
    }
    for (int64_t i = 0; i < count; ++i) out[i] = To(numbers[i]);
    if (!one_scale) scale += count, zero += count;
  }
}

inline Loop pick_quantise(DType to, bool one_scale) {
  const auto of = [=]<class To>(To) {
    return one_scale ? &quantise<To, true> : &quantise<To, false>;
  };
  switch (to) {
    case DType::int8: return of(int8_t{});
    case DType::uint8: return of(uint8_t{});
    case DType::int16: return of(int16_t{});
    case DType::uint16: return of(uint16_t{});
    default: return nullptr;
  }
}

}  // namespace
}  // namespace rlx::cpu
