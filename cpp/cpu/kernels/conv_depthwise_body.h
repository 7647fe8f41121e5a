// Depthwise convolution, vectorised over the channels.
//
// Templates over the vector width; static, so that each instruction set keeps its own copy.
#pragma once

#include <algorithm>
#include <type_traits>

#include "core/half.h"
#include "cpu/kernels/conv_depthwise_kernels.h"
#include "kernels/include/small_floats.h"

namespace rlx::cpu::depthwise {

template <class T, int bytes>
struct VectorOf {
  typedef T type __attribute__((vector_size(bytes)));
  typedef T unaligned __attribute__((vector_size(bytes), aligned(alignof(T)), may_alias));
};

// `lanes` elements of X as values of Sum.
template <class X, class Sum, int lanes>
[[gnu::always_inline]] static inline auto load(const X* from) {
  using V = typename VectorOf<Sum, lanes * int(sizeof(Sum))>::type;
  if constexpr (std::is_same_v<X, Float16> || std::is_same_v<X, Bfloat16>) {
    using Bits = typename VectorOf<uint32_t, lanes * 4>::type;
    using Loaded = typename VectorOf<uint16_t, lanes * 2>::unaligned;
    const Bits half = __builtin_convertvector(*reinterpret_cast<const Loaded*>(from), Bits);
    if constexpr (std::is_same_v<X, Bfloat16>) return V(half << 16);
    // Multiplying by 2^112 makes normal numbers and subnormals right at once.
    const V scaled = V((half & 0x7fffu) << 13) * 0x1p112f;
    const Bits special = Bits((half & 0x7c00u) == 0x7c00u) & 0x7f800000u;
    return V(Bits(scaled) | special | (half & 0x8000u) << 16);
  } else {
    using Loaded = typename VectorOf<X, lanes * int(sizeof(X))>::unaligned;
    return __builtin_convertvector(*reinterpret_cast<const Loaded*>(from), V);
  }
}

template <class Y, class V, int lanes>
[[gnu::always_inline]] static inline void store(Y* to, V sums) {
  if constexpr (!std::is_same_v<Y, Float16> && !std::is_same_v<Y, Bfloat16>) {
    *reinterpret_cast<typename VectorOf<Y, lanes * int(sizeof(Y))>::unaligned*>(to) = sums;
  } else {
    constexpr bool is_f16 = std::is_same_v<Y, Float16>;
    using Format = std::conditional_t<is_f16, scalar::Float16, scalar::BFloat16>;
    for (int l = 0; l < lanes; ++l) {
      to[l].bits = uint16_t(scalar::encode<Format, false>(sums[l]));
    }
  }
}

struct Pixel {  // one output pixel's taps
  const TapRun *d, *h, *w;
};

// `vectors` vectors of `lanes` channels of one output pixel. x and packed start at the first.
template <class X, class Sum, class Y, int lanes, int vectors>
[[gnu::always_inline]] static inline void pixel(const DepthwiseConv& conv, const Pixel& p,
                                                const X* x, const Sum* packed, Sum zero, Y* y) {
  using V = typename VectorOf<Sum, lanes * int(sizeof(Sum))>::type;
  using U = typename VectorOf<Sum, lanes * int(sizeof(Sum))>::unaligned;
  const ConvGeometry& g = conv.geometry;
  const AxisTaps* t = conv.taps;
  V sums[vectors] = {};
  for (int64_t i = 0; i < p.d->count; ++i) {
    const int64_t plane_tap = (p.d->tap + i * t[0].tap_step) * g.kernel[1];
    const X* plane = x + (p.d->source + i * t[0].source_step) * g.x.space[0];
    for (int64_t j = 0; j < p.h->count; ++j) {
      const int64_t row_tap = (plane_tap + p.h->tap + j * t[1].tap_step) * g.kernel[2];
      const X* from = plane + (p.h->source + j * t[1].source_step) * g.x.space[1] +
                      p.w->source * g.x.space[2];
      const Sum* weights = packed + (row_tap + p.w->tap) * g.out_channels;
      for (int64_t k = 0; k < p.w->count; ++k) {
        for (int v = 0; v < vectors; ++v) {
          const V value = load<X, Sum, lanes>(from + v * lanes) - zero;
          sums[v] += value * V(*reinterpret_cast<const U*>(weights + v * lanes));
        }
        from += t[2].source_step * g.x.space[2];
        weights += t[2].tap_step * g.out_channels;
      }
    }
  }
  for (int v = 0; v < vectors; ++v) store<Y, V, lanes>(y + v * lanes, sums[v]);
}

// All channels of a pixel when each input channel gives one output channel.
template <class X, class Sum, class Y, int bytes>
[[gnu::always_inline]] static inline void channels(const DepthwiseConv& conv, const Pixel& p,
                                                   const X* x, const Sum* packed, Sum zero,
                                                   Y* y) {
  constexpr int lanes = bytes / int(sizeof(Sum));
  const int64_t count = conv.geometry.out_channels;
  int64_t c = 0;
  for (; c + 4 * lanes <= count; c += 4 * lanes) {
    pixel<X, Sum, Y, lanes, 4>(conv, p, x + c, packed + c, zero, y + c);
  }
  for (; c + lanes <= count; c += lanes) {
    pixel<X, Sum, Y, lanes, 1>(conv, p, x + c, packed + c, zero, y + c);
  }
  if (c < count && count >= lanes) {  // overlaps what is done: the values are equal
    c = count - lanes;
    pixel<X, Sum, Y, lanes, 1>(conv, p, x + c, packed + c, zero, y + c);
    return;
  }
  for (; c < count; ++c) pixel<X, Sum, Y, 1, 1>(conv, p, x + c, packed + c, zero, y + c);
}

template <class X, class Sum, class Y, int bytes>
static void rows(const DepthwiseConv& conv, const void* x, const void* packed, int32_t x_zero,
                 void* y, int64_t begin, int64_t end) {
  const ConvGeometry& g = conv.geometry;
  const int64_t multiplier = g.out_per_group();
  for (int64_t row = begin; row < end; ++row) {
    const int64_t h = row % g.out[1], d = row / g.out[1] % g.out[0];
    const int64_t n = row / (g.out[0] * g.out[1]);
    const X* image = static_cast<const X*>(x) + n * g.x.batch;
    Y* to = static_cast<Y*>(y) + n * g.y.batch + d * g.y.space[0] + h * g.y.space[1];
    Pixel p{&conv.taps[0].runs[size_t(d)], &conv.taps[1].runs[size_t(h)], nullptr};
    for (int64_t o = 0; o < g.out[2]; ++o, to += g.y.space[2]) {
      p.w = &conv.taps[2].runs[size_t(o)];
      const Sum* weights = static_cast<const Sum*>(packed);
      if (multiplier == 1) {
        channels<X, Sum, Y, bytes>(conv, p, image, weights, Sum(x_zero), to);
        continue;
      }
      for (int64_t c = 0; c < g.out_channels; ++c) {
        pixel<X, Sum, Y, 1, 1>(conv, p, image + c / multiplier, weights + c, Sum(x_zero), to + c);
      }
    }
  }
}

template <int bytes>
constexpr DepthwiseTable table() {
  return {rows<float, float, float, bytes>,        rows<double, double, double, bytes>,
          rows<int8_t, int32_t, int32_t, bytes>,   rows<uint8_t, int32_t, int32_t, bytes>,
          rows<Float16, float, Float16, bytes>,    rows<Float16, float, float, bytes>,
          rows<Bfloat16, float, Bfloat16, bytes>,  rows<Bfloat16, float, float, bytes>};
}

}  // namespace rlx::cpu::depthwise
