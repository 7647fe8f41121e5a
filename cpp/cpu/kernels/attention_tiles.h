// Products, exponentials and maxima of small float tiles, for one vector width.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "cpu/kernels/vecmath.h"

namespace rlx::cpu::attending {

template <class T, int bytes>
struct VectorOf {
  typedef T type __attribute__((vector_size(bytes)));
  typedef T unaligned __attribute__((vector_size(bytes), aligned(alignof(T)), may_alias));
};

template <int bytes>
struct Block {
  using V = typename VectorOf<float, bytes>::type;
  using U = typename VectorOf<float, bytes>::unaligned;
  static constexpr int64_t lanes = bytes / 4;
  static constexpr int64_t pair = 2 * lanes;

  static V load(const float* p) { return *reinterpret_cast<const U*>(p); }
  static void store(float* p, V x) { *reinterpret_cast<U*>(p) = x; }

  // c[r][0:n] = (or +=) sum over k of a[r][k] * b[k][0:n], for R rows and n <= one pair.
  template <int R, bool add>
  static void tile(const float* a, int64_t lda, const float* b, int64_t ldb, float* c, int64_t ldc,
                   int64_t depth) {
    V sum[R][2] = {};
    for (int64_t k = 0; k < depth; ++k) {
      const V b0 = load(b + k * ldb), b1 = load(b + k * ldb + lanes);
      for (int r = 0; r < R; ++r) {
        const V x = vecmath::all<V>(a[r * lda + k]);
        sum[r][0] += x * b0;
        sum[r][1] += x * b1;
      }
    }
    for (int r = 0; r < R; ++r) {
      for (int h = 0; h < 2; ++h) {
        float* to = c + r * ldc + h * lanes;
        store(to, add ? load(to) + sum[r][h] : sum[r][h]);
      }
    }
  }

  template <bool add>
  static void product(const float* a, int64_t lda, const float* b, int64_t ldb, float* c,
                      int64_t ldc, int64_t rows, int64_t columns, int64_t depth) {
    for (int64_t j = 0; j < columns; j += pair) {
      for (int64_t r = 0; r < rows; r += 6) {
        const float* from = a + r * lda;
        float* to = c + r * ldc + j;
        switch (std::min<int64_t>(rows - r, 6)) {
          case 6: tile<6, add>(from, lda, b + j, ldb, to, ldc, depth); break;
          case 5: tile<5, add>(from, lda, b + j, ldb, to, ldc, depth); break;
          case 4: tile<4, add>(from, lda, b + j, ldb, to, ldc, depth); break;
          case 3: tile<3, add>(from, lda, b + j, ldb, to, ldc, depth); break;
          case 2: tile<2, add>(from, lda, b + j, ldb, to, ldc, depth); break;
          default: tile<1, add>(from, lda, b + j, ldb, to, ldc, depth); break;
        }
      }
    }
  }

  static float sum_of(V x) {
    float s = 0;
    for (int64_t i = 0; i < lanes; ++i) s += x[i];
    return s;
  }

  static float dot(const float* a, const float* b, int64_t n) {
    V s0 = {}, s1 = {};
    int64_t i = 0;
    for (; i + pair <= n; i += pair) {
      s0 += load(a + i) * load(b + i);
      s1 += load(a + i + lanes) * load(b + i + lanes);
    }
    float s = sum_of(s0 + s1);
    for (; i < n; ++i) s += a[i] * b[i];
    return s;
  }

  // Scores of one row become weights; returns their sum. Padding up to a vector becomes 0.
  static float exponentials(float* s, int64_t n, float top) {
    V total = {};
    const V shift = vecmath::all<V>(top);
    int64_t j = 0;
    for (; j + lanes <= n; j += lanes) {
      const V p = vecmath::exp<V>(load(s + j) - shift);
      store(s + j, p);
      total += p;
    }
    float sum = sum_of(total);
    for (; j < n; ++j) sum += s[j] = vecmath::exp<float>(s[j] - top);
    return sum;
  }

  static float largest(const float* s, int64_t n) {
    float top = -std::numeric_limits<float>::infinity();
    for (int64_t j = 0; j < n; ++j) top = s[j] > top || s[j] != s[j] ? s[j] : top;
    return top;
  }
};

static inline int64_t padded(int64_t n) { return (n + 31) / 32 * 32; }

template <class T>
static inline void widen(const T* from, float* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = float(from[i]);
}

}  // namespace rlx::cpu::attending
