// The attention block for one vector width; static, so that each instruction set has its own.
#pragma once

#include <algorithm>
#include <limits>
#include <type_traits>

#include "core/half.h"
#include "cpu/kernels/attention.h"
#include "cpu/kernels/attention_tiles.h"
#include "cpu/kernels/vecmath.h"

namespace rlx::cpu::attending {

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
