// Bodies of the loops that cast between compute types and convert storage types.
#pragma once

#if defined(__F16C__)
#include <immintrin.h>
#endif

#include <cstring>

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

// Eight bits have few values: a table is faster than any arithmetic.
template <class F>
struct Decoded {
  float values[256];
  Decoded() {
    for (unsigned code = 0; code < 256; ++code) values[code] = F{}(code);
  }
};

template <class F>
void look_up(void* dst, const void* a, const void*, const void*, int64_t n) {
  static const Decoded<F> table;
  auto* out = static_cast<float*>(dst);
  auto* x = static_cast<const uint8_t*>(a);
  for (int64_t i = 0; i < n; ++i) out[i] = table.values[x[i]];
}

template <class F>
Loop table_of(F) {
  return &look_up<F>;
}

template <class Format>
Loop table_for() {
  return table_of([](unsigned code) {
    return scalar::decode<Format>(code & (2 * Format::sign_code - 1));
  });
}

#if defined(__F16C__)
void load_float16(void* dst, const void* a, const void*, const void*, int64_t n) {
  auto* out = static_cast<float*>(dst);
  auto* x = static_cast<const uint16_t*>(a);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i));
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(half));
  }
  for (; i < n; ++i) out[i] = _cvtsh_ss(x[i]);
}

void store_float16(void* dst, const void* a, const void*, const void*, int64_t n) {
  auto* out = static_cast<uint16_t*>(dst);
  auto* x = static_cast<const float*>(a);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), half);
  }
  for (; i < n; ++i) out[i] = _cvtss_sh(x[i], _MM_FROUND_TO_NEAREST_INT);
}
#endif

// f(Tag<Format>{}) for a small float with sign and mantissa.
template <class F>
Loop with_format(DType type, F&& f) {
  switch (type) {
    case DType::float16: return f(Tag<scalar::Float16>{});
    case DType::bfloat16: return f(Tag<scalar::BFloat16>{});
    case DType::float8e4m3fn: return f(Tag<scalar::Float8E4M3FN>{});
    case DType::float8e4m3fnuz: return f(Tag<scalar::Float8E4M3FNUZ>{});
    case DType::float8e5m2: return f(Tag<scalar::Float8E5M2>{});
    case DType::float8e5m2fnuz: return f(Tag<scalar::Float8E5M2FNUZ>{});
    case DType::float4e2m1: return f(Tag<scalar::Float4E2M1>{});
    default: return nullptr;
  }
}

// The low `bits` of a byte as a number of that width.
template <class T, int bits>
T narrow(T x) {
  return T(T(scalar::Unsigned<T>(x) << (8 - bits)) >> (8 - bits));
}

// f(Tag<int8_t or uint8_t>, Tag<width>) for integers of less than a byte.
template <class F>
Loop with_narrow(DType type, F&& f) {
  switch (type) {
    case DType::int4: return f(Tag<int8_t>{}, std::integral_constant<int, 4>{});
    case DType::uint4: return f(Tag<uint8_t>{}, std::integral_constant<int, 4>{});
    case DType::int2: return f(Tag<int8_t>{}, std::integral_constant<int, 2>{});
    case DType::uint2: return f(Tag<uint8_t>{}, std::integral_constant<int, 2>{});
    default: return nullptr;
  }
}

Loop narrow_loop(DType type) {
  return with_narrow(type, [](auto tag, auto bits) {
    using T = typename decltype(tag)::type;
    constexpr int width = bits;
    return loop_of<T, T>([](T x) { return narrow<T, width>(x); });
  });
}

Loop pick_load(DType storage) {
#if defined(__F16C__)
  if (storage == DType::float16) return &load_float16;
#endif
  if (storage == DType::float8e8m0) {
    return table_of([](unsigned code) { return scalar::decode_e8m0(code); });
  }
  if (Loop loop = narrow_loop(storage)) return loop;
  return with_format(storage, [](auto tag) {
    using Format = typename decltype(tag)::type;
    if constexpr (Format::exponent_bits + Format::mantissa_bits == 15) {
      return loop_of<float, uint16_t>([](uint16_t x) { return scalar::decode<Format>(x); });
    } else {
      return table_for<Format>();
    }
  });
}

// f is given what turns a float into a code, as a stateless function.
template <class F>
Loop with_encoder(DType storage, CastMode mode, F&& f) {
  using Round = scalar::Round;
  if (storage == DType::float8e8m0) {
    if (mode.round == CastMode::Round::down) {
      return f([](float x) { return scalar::encode_e8m0<true>(x, Round::down); });
    }
    if (mode.round == CastMode::Round::nearest) {
      if (mode.saturate) {
        return f([](float x) { return scalar::encode_e8m0<true>(x, Round::nearest); });
      }
      return f([](float x) { return scalar::encode_e8m0<false>(x, Round::nearest); });
    }
    if (mode.saturate) return f([](float x) { return scalar::encode_e8m0<true>(x, Round::up); });
    return f([](float x) { return scalar::encode_e8m0<false>(x, Round::up); });
  }
  return with_format(storage, [&](auto tag) {
    using Format = typename decltype(tag)::type;
    constexpr bool byte = Format::exponent_bits + Format::mantissa_bits < 8;
    if constexpr (byte) {
      if (mode.saturate) return f([](float x) { return scalar::encode<Format, true>(x); });
    }
    return f([](float x) { return scalar::encode<Format, false>(x); });
  });
}

Loop pick_store(DType storage, CastMode mode) {
#if defined(__F16C__)
  if (storage == DType::float16) return &store_float16;
#endif
  if (Loop loop = with_narrow(storage, [](auto tag, auto bits) {
        using T = typename decltype(tag)::type;
        constexpr int mask = (1 << bits) - 1;
        return loop_of<T, T>([](T x) { return T(x & mask); });
      })) {
    return loop;
  }
  return with_encoder(storage, mode, [&](auto encode) -> Loop {
    if (size_of(storage) == 2) return loop_of<uint16_t, float>(encode);
    return loop_of<uint8_t, float>(encode);
  });
}

}  // namespace
}  // namespace rlx::cpu
