// The attention block for one vector width; static, so that each instruction set has its own.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/half.h"
#include "cpu/kernels/attention.h"
#include "cpu/kernels/attention_tiles.h"
#include "cpu/kernels/vecmath.h"

namespace rlx::cpu::attending {

constexpr float infinity = std::numeric_limits<float>::infinity();

// Everything one task works on.
template <class T, int bytes>
struct Task {
  using B = Block<bytes>;
  const AttentionShape& s;
  const AttentionScratch at;
  const T *k, *v;
  int64_t first, rows;   // query rows of the group: head in the group * queries + query
  int64_t base;          // row number of the hook at group row 0
  float *q, *keys, *values, *scores, *sums, *tops, *totals;
  const ScoreHook& hook;
  const bool direct;  // keys and values are read where they lie

  Task(const AttentionShape& shape, const T* k_head, const T* v_head, int64_t first_row,
       int64_t row_count, int64_t hook_row, float* scratch, const ScoreHook& score_hook)
      : s(shape), at(attention_scratch(shape)), k(k_head), v(v_head), first(first_row),
        rows(row_count), base(hook_row), q(scratch), keys(scratch + at.keys),
        values(scratch + at.values), scores(scratch + at.scores), sums(scratch + at.sums),
        tops(scratch + at.tops), totals(scratch + at.totals), hook(score_hook),
        direct(std::is_same_v<T, float> && rows <= B::few && s.value_depth % B::lanes == 0) {}

  int64_t query_of(int64_t r) const { return (first + r) % s.queries; }

  // Keys [0, end) are those that some row of [r, r + n) sees.
  int64_t seen(int64_t r, int64_t n) const {
    if (!s.causal) return s.keys;
    int64_t last = 0;
    for (int64_t i = r; i < r + n; ++i) last = std::max(last, query_of(i));
    return std::clamp<int64_t>(last + s.causal_offset + 1, 0, s.keys);
  }

  void run() {
    const int64_t end = seen(0, rows);
    for (int64_t j = 0; j < end; j += key_block) {
      const int64_t n = std::min(key_block, end - j);
      if (!direct) pack(j, n);
      for (int64_t r = 0; r < rows; r += attention_rows) {
        const int64_t count = std::min(attention_rows, rows - r);
        const int64_t here = std::min(n, seen(r, count) - j);
        if (here <= 0) continue;
        score(r, count, j, here);
        soften(r, count, here);
        accumulate(r, count, j, here);
      }
    }
  }

  // Keys [j, j + n) transposed and values, both in panels of one pair of vectors.
  void pack(int64_t j, int64_t n) {
    for (int64_t i = 0; i < n; i += B::pair) {
      const int64_t count = std::min(B::pair, n - i);
      float* to = keys + i * s.depth;
      if (count < B::pair) std::fill(to, to + B::pair * s.depth, 0.0f);
      const T* from = k + (j + i) * s.k.row;
      if constexpr (std::is_same_v<T, float>) {
        tile::transpose(from, s.k.row, count, s.depth, to, B::pair);
      } else {
        float* wide = values;  // which come later
        for (int64_t r = 0; r < count; ++r) widen(from + r * s.k.row, wide + r * s.depth, s.depth);
        tile::transpose<float>(wide, s.depth, count, s.depth, to, B::pair);
      }
    }
    for (int64_t c = 0; c < s.value_depth; c += B::pair) {
      const int64_t count = std::min(B::pair, s.value_depth - c);
      float* to = values + c * key_block;
      for (int64_t i = 0; i < n; ++i, to += B::pair) {
        const T* from = v + (j + i) * s.v.row + c;
        if (count == B::pair) {
          widen(from, to, B::pair);
        } else {
          widen(from, to, count);
          std::fill(to + count, to + B::pair, 0.0f);
        }
      }
    }
  }

  // Scores of keys [j, j + n) for rows [r, r + count), hook and mask applied.
  void score(int64_t r, int64_t count, int64_t j, int64_t n) {
    const float* a = q + r * s.depth;
    if constexpr (std::is_same_v<T, float>) {
      if (direct) {
        B::dots(count, a, s.depth, k + j * s.k.row, s.k.row, scores, at.score_ld, n, s.depth);
      }
    }
    if (!direct) {
      B::template product<false>(a, s.depth, {keys, B::pair, B::pair * s.depth}, scores,
                                 at.score_ld, count, n, s.depth);
    }
    for (int64_t i = 0; i < count; ++i) {
      float* line = scores + i * at.score_ld;
      if (hook.rewrite) hook.rewrite(hook.context, base + first + r + i, j, n, line);
      if (!s.causal) continue;
      const int64_t end = query_of(r + i) + s.causal_offset + 1 - j;  // of what is seen
      if (end < n) std::fill(line + std::max<int64_t>(end, 0), line + n, -infinity);
    }
  }

  // Scores to weights, with what was summed before scaled to the new maximum.
  void soften(int64_t r, int64_t count, int64_t n) {
    for (int64_t i = r; i < r + count; ++i) {
      float* line = scores + (i - r) * at.score_ld;
      const float top = B::largest(line, n, tops[i]);
      if (top == -infinity) {  // nothing seen yet, unless it was NaN
        for (int64_t c = 0; c < n; ++c) totals[i] += std::isnan(line[c]) ? line[c] : 0.0f;
        std::fill(line, line + n, 0.0f);
        continue;
      }
      const float keep = tops[i] == top ? 1.0f : vecmath::exp<float>(tops[i] - top);
      totals[i] = totals[i] * keep + B::exponentials(line, n, top);
      if (keep != 1.0f) {
        for (int64_t c = 0; c < at.sum_ld; ++c) sums[i * at.sum_ld + c] *= keep;
      }
      tops[i] = top;
    }
  }

  void accumulate(int64_t r, int64_t count, int64_t j, int64_t n) {
    float* to = sums + r * at.sum_ld;
    if constexpr (std::is_same_v<T, float>) {
      if (direct) {
        return B::add_few(scores, at.score_ld, v + j * s.v.row, s.v.row, to, at.sum_ld, count,
                          s.value_depth, n);
      }
    }
    B::template product<true>(scores, at.score_ld, {values, B::pair, B::pair * key_block}, to,
                              at.sum_ld, count, s.value_depth, n);
  }
};

template <class T, int bytes>
static void block(const AttentionShape& s, const void* q, const void* k, const void* v, void* y,
                  int64_t task, float* scratch, const ScoreHook& hook) {
  const int64_t blocks = tasks_of_head(s), group = s.heads / s.kv_heads;
  const int64_t b = task / blocks / s.kv_heads, h = task / blocks % s.kv_heads;
  const int64_t first = task % blocks * s.task_rows;
  const int64_t rows = std::min(s.task_rows, group * s.queries - first);
  Task<T, bytes> t(s, static_cast<const T*>(k) + b * s.k.batch + h * s.k.head,
                   static_cast<const T*>(v) + b * s.v.batch + h * s.v.head, first, rows,
                   (b * s.heads + h * group) * s.queries, scratch, hook);
  auto place = [&](int64_t r, const HeadStrides& x) {
    return b * x.batch + (h * group + (first + r) / s.queries) * x.head + t.query_of(r) * x.row;
  };
  for (int64_t r = 0; r < rows; ++r) {
    const T* from = static_cast<const T*>(q) + place(r, s.q);
    for (int64_t d = 0; d < s.depth; ++d) t.q[r * s.depth + d] = float(from[d]) * s.scale;
    t.tops[r] = -infinity;
    t.totals[r] = 0.0f;
  }
  const int64_t ld = t.at.sum_ld;
  std::fill(t.sums, t.sums + rows * ld, 0.0f);
  t.run();
  for (int64_t r = 0; r < rows; ++r) {
    T* to = static_cast<T*>(y) + place(r, s.y);
    const float total = t.totals[r];
    const float scale = total == 0.0f ? std::numeric_limits<float>::quiet_NaN() : 1.0f / total;
    for (int64_t c = 0; c < s.value_depth; ++c) to[c] = T(t.sums[r * ld + c] * scale);
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
