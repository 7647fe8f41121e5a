// Bodies of the loops that convert between storage types and the compute types they stand for.
#pragma once

#if defined(__F16C__)
#include <immintrin.h>
#endif

#include <type_traits>

#include "cpu/kernels/region_cast_body.h"
#include "kernels/include/small_floats.h"

namespace rlx::cpu {
namespace {

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

template <auto value>
using Constant = std::integral_constant<decltype(value), value>;

// f is given what turns a float into a code, as a stateless function.
template <class F>
Loop with_encoder(DType storage, CastMode mode, F&& f) {
  using Round = scalar::Round;
  if (storage == DType::float8e8m0) {
    const auto with = [&](auto saturate, auto round) {
      constexpr bool cut = saturate;
      constexpr Round rounding = round;
      return f([](float x) { return scalar::encode_e8m0<cut>(x, rounding); });
    };
    const auto rounded = [&](auto saturate) {
      switch (mode.round) {
        case CastMode::Round::up: return with(saturate, Constant<Round::up>{});
        case CastMode::Round::down: return with(saturate, Constant<Round::down>{});
        default: return with(saturate, Constant<Round::nearest>{});
      }
    };
    return mode.saturate ? rounded(std::true_type{}) : rounded(std::false_type{});
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
