// Attention without the S x T matrix: blocks of keys with a running softmax (Milakov and
// Gimelshein 2018; Dao et al. 2022), one instruction set a file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/divide.h"
#include "core/dtype.h"

namespace rlx::cpu {

struct HeadStrides {
  int64_t batch = 0, head = 0, row = 0;  // elements; the head dim is contiguous
};

struct AttentionShape {
  int64_t batch = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0, depth = 0, value_depth = 0;
  HeadStrides q, k, v, y;
  float scale = 1.0f;
  bool causal = false;
  int64_t causal_offset = 0;  // key j is masked for query i when j > i + offset
  DType dtype = DType::float32;
  int64_t task_rows = 0;  // see divide_attention
};

// Rewrites `n` scores of query row `row` ([batch, head, query] flattened) from key `key` on.
struct ScoreHook {
  void (*rewrite)(void* context, int64_t row, int64_t key, int64_t n, float* scores) = nullptr;
  void* context = nullptr;
};

constexpr int64_t key_block = 128;
constexpr int attention_tile = 6;  // rows of the micro kernel
constexpr int64_t attention_rows = 4 * attention_tile;  // whose scores are kept

// The rows of all query heads that share a key/value head.
inline int64_t query_rows(const AttentionShape& s) { return s.heads / s.kv_heads * s.queries; }

// Sets task_rows so that the tasks keep `threads` busy.
void divide_attention(AttentionShape& shape, int threads);

inline int64_t tasks_of_head(const AttentionShape& s) {
  return ceil_div(query_rows(s), s.task_rows);
}
inline int64_t attention_tasks(const AttentionShape& s) {
  return s.batch * s.kv_heads * tasks_of_head(s);
}

// Where the parts of a thread's scratch begin, in floats; each on a cache line of its own.
struct AttentionScratch {
  int64_t keys = 0, values = 0, scores = 0, sums = 0, tops = 0, totals = 0, size = 0;
  int64_t score_ld = 0, sum_ld = 0;
};
AttentionScratch attention_scratch(const AttentionShape& shape);

// `task_rows` query rows (the last task of a head: the rest) of task's key/value head.
using AttentionBlock = void (*)(const AttentionShape& shape, const void* q, const void* k,
                                const void* v, void* y, int64_t task, float* scratch,
                                const ScoreHook& hook);

extern const AttentionBlock attention_portable, attention_avx2, attention_avx512;

}  // namespace rlx::cpu
