// Activations, residuals and 16-bit conversions around float matrix products.
//
// Templates over the vector width; see gemm_vector.h.
#pragma once

#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "core/half.h"
#include "cpu/kernels/gemm_vector.h"
#include "cpu/kernels/vecmath.h"

namespace rlx::cpu::tile {

template <int bytes>
using Floats = Vec<float, bytes>;

template <int bytes, class F>
[[gnu::always_inline]] static inline void map_row(const EpilogueBlock& block, float* c,
                                                  const float* residual, F activation) {
  constexpr int lanes = bytes / 4;
  const auto step = [&](Floats<bytes> value, Floats<bytes> other) {
    if (residual && block.residual_first) value += other;
    value = activation(value);
    if (residual && !block.residual_first) value += other;
    return value;
  };
  int64_t j = 0;
  for (; j + lanes <= block.cols; j += lanes) {
    Floats<bytes> other{};
    if (residual) other = load<float, bytes>(residual + j);
    store<float, bytes>(c + j, step(load<float, bytes>(c + j), other));
  }
  if (j == block.cols) return;
  float values[lanes] = {}, others[lanes] = {};
  const int64_t left = block.cols - j;
  for (int64_t i = 0; i < left; ++i) values[i] = c[j + i];
  for (int64_t i = 0; residual && i < left; ++i) others[i] = residual[j + i];
  store<float, bytes>(values, step(load<float, bytes>(values), load<float, bytes>(others)));
  for (int64_t i = 0; i < left; ++i) c[j + i] = values[i];
}

template <int bytes, class F>
static void map_block(const EpilogueBlock& block, F activation) {
  for (int64_t i = 0; i < block.rows; ++i) {
    const float* residual = block.residual ? block.residual + i * block.residual_ld : nullptr;
    map_row<bytes>(block, block.c + i * block.ldc, residual, activation);
  }
}

template <int bytes>
static void epilogue(const EpilogueBlock& block) {
  using V = Floats<bytes>;
  const V zero{}, low = vecmath::all<V>(block.low), high = vecmath::all<V>(block.high);
  switch (block.activation) {
    case Activation::none: return map_block<bytes>(block, [](V x) { return x; });
    // Written so that a NaN stays.
    case Activation::relu: return map_block<bytes>(block, [&](V x) { return x < zero ? zero : x; });
    case Activation::clip: return map_block<bytes>(block, [&](V x) {
      x = x < low ? low : x;
      return x > high ? high : x;
    });
    case Activation::gelu_erf:
      return map_block<bytes>(block, [](V x) { return vecmath::gelu_erf(x); });
    case Activation::gelu_tanh:
      return map_block<bytes>(block, [](V x) { return vecmath::gelu_tanh(x); });
    case Activation::silu: return map_block<bytes>(block, [](V x) { return vecmath::silu(x); });
    case Activation::sigmoid:
      return map_block<bytes>(block, [](V x) { return vecmath::sigmoid(x); });
    case Activation::tanh: return map_block<bytes>(block, [](V x) { return vecmath::tanh(x); });
  }
}

[[gnu::always_inline]] static inline float from_bfloat16(uint16_t value) {
  return std::bit_cast<float>(uint32_t{value} << 16);
}

[[gnu::always_inline]] static inline uint16_t to_bfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const bool nan = (bits & 0x7fffffff) > 0x7f800000;
  return uint16_t(nan ? (bits >> 16) | 0x40 : rounded);
}

#if defined(__F16C__)
// GCC 12 would convert float16 one by one.
static inline void widen_float16(const uint16_t* from, int64_t count, float* to) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i eight = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(eight));
  }
  for (; i < count; ++i) to[i] = _cvtsh_ss(from[i]);
}

static inline void narrow_float16(const float* from, int64_t count, uint16_t* to) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i eight = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), eight);
  }
  for (; i < count; ++i) to[i] = _cvtss_sh(from[i], _MM_FROUND_TO_NEAREST_INT);
}
#else
static inline void widen_float16(const uint16_t* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = std::bit_cast<Float16>(from[i]);
}

static inline void narrow_float16(const float* from, int64_t count, uint16_t* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = Float16(from[i]).bits;
}
#endif

template <int>
static void widen(DType type, const void* from, int64_t count, float* to) {
  const uint16_t* values = static_cast<const uint16_t*>(from);
  if (type != DType::bfloat16) return widen_float16(values, count, to);
  for (int64_t i = 0; i < count; ++i) to[i] = from_bfloat16(values[i]);
}

template <int>
static void narrow(DType type, const float* from, int64_t count, void* to) {
  uint16_t* values = static_cast<uint16_t*>(to);
  if (type != DType::bfloat16) return narrow_float16(from, count, values);
  for (int64_t i = 0; i < count; ++i) values[i] = to_bfloat16(from[i]);
}

}  // namespace rlx::cpu::tile
