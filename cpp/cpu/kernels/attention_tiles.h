// Products, exponentials and maxima of small float tiles, for one vector width.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "core/divide.h"
#include "cpu/kernels/attention.h"
#include "cpu/kernels/exp_falling.h"
#include "cpu/kernels/gemm_vector.h"
#include "cpu/kernels/vecmath.h"

namespace rlx::cpu::attending {

// The right side of a product: rows `step` apart, each group of columns `panel` after the last.
struct Panels {
  const float* at;
  int64_t step, panel;
};

template <class V>
[[gnu::always_inline]] static inline float sum_of(V x) {
  if constexpr (sizeof(V) == 64) {
    return sum_of(__builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7) +
                      __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15));
  } else if constexpr (sizeof(V) == 32) {
    return sum_of(__builtin_shufflevector(x, x, 0, 1, 2, 3) +
                      __builtin_shufflevector(x, x, 4, 5, 6, 7));
  } else {
    return (x[0] + x[1]) + (x[2] + x[3]);
  }
}

template <int bytes>
struct Block {
  using V = tile::Vec<float, bytes>;
  static constexpr int64_t lanes = bytes / 4;
  static constexpr int64_t pair = 2 * lanes;  // columns of a panel

  static V load(const float* p) { return tile::load<float, bytes>(p); }
  static void store(float* p, V x) { tile::store<float, bytes>(p, x); }

  // c[r][:] = (or +=) sum over k of a[r][k] * b[k][:], for R rows and N vectors of columns.
  template <int R, int N, bool add>
  static void tile_of(const float* a, int64_t lda, const float* b, int64_t step, float* c,
                      int64_t ldc, int64_t depth) {
    V sum[R][N] = {};
    for (int64_t k = 0; k < depth; ++k, b += step) {
      V right[N];
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) right[n] = load(b + n * lanes);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
        for (int n = 0; n < N; ++n) sum[r][n] += right[n] * a[r * lda + k];
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) {
        float* to = c + r * ldc + n * lanes;
        store(to, add ? load(to) + sum[r][n] : sum[r][n]);
      }
    }
  }

  template <int N, bool add, int R = attention_tile>
  static void tile_rows(int64_t rows, const float* a, int64_t lda, const float* b, int64_t step,
                        float* c, int64_t ldc, int64_t depth) {
    if constexpr (R > 1) {
      if (rows < R) return tile_rows<N, add, R - 1>(rows, a, lda, b, step, c, ldc, depth);
    }
    tile_of<R, N, add>(a, lda, b, step, c, ldc, depth);
  }

  // Writes whole vectors of columns.
  template <bool add>
  static void product(const float* a, int64_t lda, Panels b, float* c, int64_t ldc, int64_t rows,
                      int64_t columns, int64_t depth) {
    for (int64_t j = 0; j < columns; j += pair, b.at += b.panel, c += pair) {
      const bool half = columns - j <= lanes;
      for (int64_t r = 0, left = ceil_div(rows, attention_tile); left > 0; --left) {
        const int64_t count = (rows - r + left - 1) / left;  // tiles of equal height
        const float* from = a + r * lda;
        float* to = c + r * ldc;
        if (half) tile_rows<1, add>(count, from, lda, b.at, b.step, to, ldc, depth);
        else tile_rows<2, add>(count, from, lda, b.at, b.step, to, ldc, depth);
        r += count;
      }
    }
  }

  // c[r][i] = a[r] . b[i] for R rows of a and K of b.
  template <int R, int K>
  static void dots_of(const float* a, int64_t lda, const float* b, int64_t ldb, float* c,
                      int64_t ldc, int64_t depth) {
    V sum[R][K] = {};
    int64_t d = 0;
    for (; d + lanes <= depth; d += lanes) {
#pragma GCC unroll 4
      for (int i = 0; i < K; ++i) {
        const V right = load(b + i * ldb + d);
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) sum[r][i] += right * load(a + r * lda + d);
      }
    }
    for (int r = 0; r < R; ++r) {
      for (int i = 0; i < K; ++i) {
        float dot = sum_of(sum[r][i]);
        for (int64_t k = d; k < depth; ++k) dot += a[r * lda + k] * b[i * ldb + k];
        c[r * ldc + i] = dot;
      }
    }
  }

  // For so few rows that transposing b would cost more than the dots.
  static constexpr int64_t few = 4;
  template <int R = few>
  static void dots(int64_t rows, const float* a, int64_t lda, const float* b, int64_t ldb,
                   float* c, int64_t ldc, int64_t n, int64_t depth) {
    if constexpr (R > 1) {
      if (rows < R) return dots<R - 1>(rows, a, lda, b, ldb, c, ldc, n, depth);
    }
    constexpr int K = R <= 2 ? 4 : 2;
    int64_t i = 0;
    for (; i + K <= n; i += K) dots_of<R, K>(a, lda, b + i * ldb, ldb, c + i, ldc, depth);
    for (; i < n; ++i) dots_of<R, 1>(a, lda, b + i * ldb, ldb, c + i, ldc, depth);
  }

  // c[r] += a[r] b for few rows: more columns at once keep the multipliers busy.
  static void add_few(const float* a, int64_t lda, const float* b, int64_t step, float* c,
                      int64_t ldc, int64_t rows, int64_t columns, int64_t depth) {
    int64_t j = 0;
    for (; j + 2 * pair <= columns && rows <= 3; j += 2 * pair) {
      tile_rows<4, true, 3>(rows, a, lda, b + j, step, c + j, ldc, depth);
    }
    if (j < columns) {
      product<true>(a, lda, {b + j, step, pair}, c + j, ldc, rows, columns - j, depth);
    }
  }

  // Scores of one row become weights; returns their sum.
  static float exponentials(float* s, int64_t n, float top) {
    V total = {};
    const V shift = vecmath::all<V>(top);
    int64_t j = 0;
    for (; j + lanes <= n; j += lanes) {
      const V p = vecmath::exp_falling<V>(load(s + j) - shift);
      store(s + j, p);
      total += p;
    }
    float sum = sum_of(total);
    for (; j < n; ++j) sum += s[j] = vecmath::exp_falling<float>(s[j] - top);
    return sum;
  }

  // The largest of `top` and s[0:n]; NaN is left out.
  static float largest(const float* s, int64_t n, float top) {
    int64_t j = 0;
    if (n >= lanes) {
      V most = vecmath::all<V>(top);
      for (; j + lanes <= n; j += lanes) {
        const V x = load(s + j);
        most = x > most ? x : most;
      }
      for (int64_t i = 0; i < lanes; ++i) top = most[i] > top ? most[i] : top;
    }
    for (; j < n; ++j) top = s[j] > top ? s[j] : top;
    return top;
  }
};

template <class T>
static inline void widen(const T* from, float* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = float(from[i]);
}

}  // namespace rlx::cpu::attending
