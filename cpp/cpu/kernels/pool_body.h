// Vectorised pooling: over the channels when they are last, otherwise along the output row.
//
// Templates over the vector width; static, so that each instruction set keeps its own copy.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>

#include "cpu/kernels/pool_kernels.h"

namespace rlx::cpu::pooling {

template <class T, int bytes>
struct VectorOf {
  typedef T type __attribute__((vector_size(bytes)));
  typedef T unaligned __attribute__((vector_size(bytes), aligned(alignof(T)), may_alias));
};

struct Max {
  template <class T>
  static constexpr T identity = std::numeric_limits<T>::has_infinity
                                    ? -std::numeric_limits<T>::infinity()
                                    : std::numeric_limits<T>::lowest();
  // A NaN on either side stays.
  template <class V>
  [[gnu::always_inline]] static V add(V best, V x) {
    if constexpr (std::is_arithmetic_v<V>) return x > best || x != x ? x : best;
    else return (x > best) | (x != x) ? x : best;
  }
  template <class V, class T>
  [[gnu::always_inline]] static V finish(V value, T) { return value; }
};

struct Average {
  template <class T>
  static constexpr T identity = 0;
  template <class V>
  [[gnu::always_inline]] static V add(V sum, V x) { return sum + x; }
  template <class V, class T>
  [[gnu::always_inline]] static V finish(V sum, T divisor) { return sum / divisor; }
};

// Calls f(begin, end) with each row's spans and its place in x and y.
template <class T, bool planes, class F>
[[gnu::always_inline]] static inline void each_row(const PoolShape& s, const void* x, void* y,
                                                   int64_t begin, int64_t end, F&& f) {
  for (int64_t row = begin; row < end; ++row) {
    const int64_t h = row % s.axes[1].out, d = row / s.axes[1].out % s.axes[0].out;
    const int64_t image = row / s.axes[1].out / s.axes[0].out;
    const int64_t n = planes ? image / s.channels : image, c = planes ? image % s.channels : 0;
    const T* from = static_cast<const T*>(x) + n * s.x.batch + c * s.x.channel;
    T* to = static_cast<T*>(y) + n * s.y.batch + c * s.y.channel;
    f(s.spans[0][size_t(d)], s.spans[1][size_t(h)], from,
      to + d * s.y.space[0] + h * s.y.space[1]);
  }
}

// `vectors` vectors of channels of one window.
template <class Op, class T, int bytes, int vectors>
[[gnu::always_inline]] static inline void window(const PoolShape& s, const WindowSpan& d,
                                                 const WindowSpan& h, const WindowSpan& w,
                                                 const T* x, T* y, T divisor) {
  using V = typename VectorOf<T, bytes>::type;
  using U = typename VectorOf<T, bytes>::unaligned;
  constexpr int64_t lanes = bytes / sizeof(T);
  V sums[vectors];
  for (V& sum : sums) sum = Op::template identity<T> - V{};
  for (int64_t i = 0; i < d.taps; ++i) {
    const T* plane = x + (d.first + i * s.axes[0].dilation) * s.x.space[0];
    for (int64_t j = 0; j < h.taps; ++j) {
      const T* row =
          plane + (h.first + j * s.axes[1].dilation) * s.x.space[1] + w.first * s.x.space[2];
      for (int64_t k = 0; k < w.taps; ++k) {
        const T* pixel = row + k * s.axes[2].dilation * s.x.space[2];
        for (int v = 0; v < vectors; ++v) {
          sums[v] = Op::add(sums[v], V(*reinterpret_cast<const U*>(pixel + v * lanes)));
        }
      }
    }
  }
  for (int v = 0; v < vectors; ++v) {
    *reinterpret_cast<U*>(y + v * lanes) = Op::finish(sums[v], divisor);
  }
}

template <class Op, class T, int bytes>
static void channels(const PoolShape& s, const void* x, void* y, int64_t begin, int64_t end) {
  constexpr int64_t lanes = bytes / sizeof(T);
  each_row<T, false>(s, x, y, begin, end, [&](const WindowSpan& d, const WindowSpan& h,
                                              const T* from, T* to) {
    for (int64_t o = 0; o < s.axes[2].out; ++o, to += s.y.space[2]) {
      const WindowSpan& w = s.spans[2][size_t(o)];
      const T divisor = T(std::max<int64_t>(d.divisor * h.divisor * w.divisor, 1));
      int64_t c = 0;
      for (; c + 4 * lanes <= s.channels; c += 4 * lanes) {
        window<Op, T, bytes, 4>(s, d, h, w, from + c, to + c, divisor);
      }
      for (; c + lanes <= s.channels; c += lanes) {
        window<Op, T, bytes, 1>(s, d, h, w, from + c, to + c, divisor);
      }
      if (c < s.channels && s.channels >= lanes) {  // overlaps what is done: the values are equal
        c = s.channels - lanes;
        window<Op, T, bytes, 1>(s, d, h, w, from + c, to + c, divisor);
        continue;
      }
      for (; c < s.channels; ++c) {
        window<Op, T, sizeof(T), 1>(s, d, h, w, from + c, to + c, divisor);
      }
    }
  });
}

// Adds one tap to a row of accumulators whose windows all contain it.
template <class Op, class T, int bytes>
[[gnu::always_inline]] static inline void add_row(const T* x, int64_t stride, int64_t count, T* y) {
  using V = typename VectorOf<T, bytes>::type;
  using U = typename VectorOf<T, bytes>::unaligned;
  constexpr int64_t lanes = bytes / sizeof(T);
  int64_t o = 0;
  if (stride == 1) {
    for (; o + lanes <= count; o += lanes) {
      U& to = *reinterpret_cast<U*>(y + o);
      to = Op::add(V(to), V(*reinterpret_cast<const U*>(x + o)));
    }
  }
  for (; o < count; ++o) y[o] = Op::add(y[o], x[o * stride]);
}

template <class Op, class T, int bytes>
static void planes(const PoolShape& s, const void* x, void* y, int64_t begin, int64_t end) {
  const WindowAxis& axis = s.axes[2];
  each_row<T, true>(s, x, y, begin, end, [&](const WindowSpan& d, const WindowSpan& h,
                                             const T* from, T* to) {
    std::fill(to, to + axis.out, Op::template identity<T>);
    for (int64_t i = 0; i < d.taps; ++i) {
      const T* plane = from + (d.first + i * s.axes[0].dilation) * s.x.space[0];
      for (int64_t j = 0; j < h.taps; ++j) {
        const T* row = plane + (h.first + j * s.axes[1].dilation) * s.x.space[1];
        for (int64_t k = 0; k < axis.kernel; ++k) {
          // Outputs o whose tap k is in the input: 0 <= o * stride + offset < in.
          const int64_t offset = k * axis.dilation - axis.pad_begin, s1 = axis.stride - 1;
          const int64_t low = std::max<int64_t>(0, (s1 - offset) / axis.stride);
          const int64_t high = std::min(axis.out, (axis.in - offset + s1) / axis.stride);
          if (low >= high) continue;
          add_row<Op, T, bytes>(row + low * axis.stride + offset, axis.stride, high - low,
                                to + low);
        }
      }
    }
    for (int64_t o = 0; o < axis.out; ++o) {
      const int64_t divisor = d.divisor * h.divisor * s.spans[2][size_t(o)].divisor;
      to[o] = Op::finish(to[o], T(std::max<int64_t>(divisor, 1)));
    }
  });
}

template <int bytes>
constexpr PoolEntry entries[] = {
    {PoolKind::max, DType::float32, channels<Max, float, bytes>, planes<Max, float, bytes>},
    {PoolKind::max, DType::float64, channels<Max, double, bytes>, planes<Max, double, bytes>},
    {PoolKind::max, DType::int8, channels<Max, int8_t, bytes>, planes<Max, int8_t, bytes>},
    {PoolKind::max, DType::uint8, channels<Max, uint8_t, bytes>, planes<Max, uint8_t, bytes>},
    {PoolKind::average, DType::float32, channels<Average, float, bytes>,
     planes<Average, float, bytes>},
    {PoolKind::average, DType::float64, channels<Average, double, bytes>,
     planes<Average, double, bytes>},
};

template <int bytes>
constexpr PoolTable table() { return {entries<bytes>, std::size(entries<bytes>)}; }

}  // namespace rlx::cpu::pooling
