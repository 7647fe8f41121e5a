// The attention block for one vector width; static, so that each instruction set has its own.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/half.h"
#include "cpu/kernels/attention.h"
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

// Everything one task works on.
template <class T, int bytes>
struct Task {
  using B = Block<bytes>;
  const AttentionShape& s;
  const T *k, *v;
  int64_t first, rows;   // query rows of the group: head in the group * queries + query
  int64_t base;          // row number of the hook at group row 0
  float *q, *keys, *values, *scores, *sums, *tops, *totals;
  const ScoreHook& hook;

  int64_t query_of(int64_t r) const { return (first + r) % s.queries; }

  // Keys [j, j + n) of this block into scores, hook and mask applied.
  void score(int64_t j, int64_t n) {
    if (rows <= 4) {
      for (int64_t i = 0; i < n; ++i) {
        const float* key = row(k + (j + i) * s.k.row, s.depth);
        for (int64_t r = 0; r < rows; ++r) {
          scores[r * key_block + i] = B::dot(q + r * s.depth, key, s.depth);
        }
      }
    } else {
      pack(j, n);
      B::template product<false>(q, s.depth, keys, key_block, scores, key_block, rows, n, s.depth);
    }
    for (int64_t r = 0; r < rows; ++r) {
      float* line = scores + r * key_block;
      if (hook.rewrite) hook.rewrite(hook.context, base + first + r, j, n, line);
      if (s.causal) {
        const int64_t last = query_of(r) + s.causal_offset;  // the last key that is seen
        for (int64_t i = std::max<int64_t>(last + 1 - j, 0); i < n; ++i) {
          line[i] = -std::numeric_limits<float>::infinity();
        }
      }
    }
  }

  // A row as floats: itself, or widened into `values` as scratch.
  const float* row(const T* from, int64_t n) {
    if constexpr (std::is_same_v<T, float>) {
      return from;
    } else {
      widen(from, values, n);
      return values;
    }
  }

  // Keys [j, j + n) transposed to [depth, key_block], zero beyond n.
  void pack(int64_t j, int64_t n) {
    const int64_t wide = padded(n);
    for (int64_t i = 0; i < n; ++i) {
      const T* from = k + (j + i) * s.k.row;
      for (int64_t d = 0; d < s.depth; ++d) keys[d * key_block + i] = float(from[d]);
    }
    for (int64_t d = 0; d < s.depth; ++d) {
      std::fill(keys + d * key_block + n, keys + d * key_block + wide, 0.0f);
    }
  }

  // Scores to weights, with what was summed before scaled to the new maximum.
  void soften(int64_t n, int64_t ld) {
    for (int64_t r = 0; r < rows; ++r) {
      float* line = scores + r * key_block;
      const float top = std::max(tops[r], B::largest(line, n));
      if (top == -std::numeric_limits<float>::infinity()) {
        std::fill(line, line + n, 0.0f);  // nothing seen yet
        continue;
      }
      const float keep = tops[r] == top ? 1.0f : vecmath::exp<float>(tops[r] - top);
      totals[r] = totals[r] * keep + B::exponentials(line, n, top);
      if (keep != 1.0f) {
        for (int64_t c = 0; c < ld; ++c) sums[r * ld + c] *= keep;
      }
      tops[r] = top;
    }
  }

  void accumulate(int64_t j, int64_t n, int64_t ld) {
    const T* from = v + j * s.v.row;
    const int64_t whole = s.value_depth / B::pair * B::pair;
    if constexpr (std::is_same_v<T, float>) {
      if (whole) {
        B::template product<true>(scores, key_block, from, s.v.row, sums, ld, rows, whole, n);
      }
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = whole; c < s.value_depth; ++c) {
          float sum = 0;
          for (int64_t i = 0; i < n; ++i) sum += scores[r * key_block + i] * from[i * s.v.row + c];
          sums[r * ld + c] += sum;
        }
      }
    } else {
      for (int64_t i = 0; i < n; ++i) {
        widen(from + i * s.v.row, values + i * ld, s.value_depth);
        std::fill(values + i * ld + s.value_depth, values + (i + 1) * ld, 0.0f);
      }
      B::template product<true>(scores, key_block, values, ld, sums, ld, rows, ld, n);
    }
  }
};

template <class T, int bytes>
static void block(const AttentionShape& s, const void* q, const void* k, const void* v, void* y,
                  int64_t task, float* scratch, const ScoreHook& hook) {
  const int64_t blocks = query_blocks(s), group = s.heads / s.kv_heads;
  const int64_t b = task / blocks / s.kv_heads, h = task / blocks % s.kv_heads;
  const int64_t first = task % blocks * query_block;
  const int64_t rows = std::min(query_block, group * s.queries - first);
  const int64_t ld = padded(s.value_depth);
  float* keys = scratch + query_block * s.depth;
  float* scores = keys + key_block * s.depth;
  float* sums = scores + query_block * key_block;
  float* tops = sums + query_block * ld;
  float* values = tops + 2 * query_block;
  Task<T, bytes> t{s, static_cast<const T*>(k) + b * s.k.batch + h * s.k.head,
                   static_cast<const T*>(v) + b * s.v.batch + h * s.v.head, first, rows,
                   (b * s.heads + h * group) * s.queries, scratch, keys, values, scores, sums,
                   tops, tops + query_block, hook};
  auto place = [&](int64_t r, const HeadStrides& x) {
    return b * x.batch + (h * group + (first + r) / s.queries) * x.head + t.query_of(r) * x.row;
  };
  int64_t seen = 0;  // keys that some row sees
  for (int64_t r = 0; r < rows; ++r) {
    const T* from = static_cast<const T*>(q) + place(r, s.q);
    for (int64_t d = 0; d < s.depth; ++d) t.q[r * s.depth + d] = float(from[d]) * s.scale;
    t.tops[r] = -std::numeric_limits<float>::infinity();
    t.totals[r] = 0.0f;
    seen = std::max(seen, t.query_of(r) + s.causal_offset + 1);
  }
  std::fill(sums, sums + rows * ld, 0.0f);
  const int64_t keys_end = s.causal ? std::clamp<int64_t>(seen, 0, s.keys) : s.keys;
  for (int64_t j = 0; j < keys_end; j += key_block) {
    const int64_t n = std::min(key_block, keys_end - j);
    t.score(j, n);
    t.soften(n, ld);
    t.accumulate(j, n, ld);
  }
  for (int64_t r = 0; r < rows; ++r) {
    T* to = static_cast<T*>(y) + place(r, s.y);
    const float scale = 1.0f / t.totals[r];
    for (int64_t c = 0; c < s.value_depth; ++c) {
      to[c] = T(t.totals[r] == 0.0f ? std::numeric_limits<float>::quiet_NaN()
                                    : sums[r * ld + c] * scale);
    }
  }
}

template <int bytes>
static void by_type(const AttentionShape& s, const void* q, const void* k, const void* v, void* y,
                    int64_t task, float* scratch, const ScoreHook& hook) {
  if (s.dtype == DType::float32) return block<float, bytes>(s, q, k, v, y, task, scratch, hook);
  if (s.dtype == DType::float16) return block<Float16, bytes>(s, q, k, v, y, task, scratch, hook);
  block<Bfloat16, bytes>(s, q, k, v, y, task, scratch, hook);
}

}  // namespace rlx::cpu::attending
