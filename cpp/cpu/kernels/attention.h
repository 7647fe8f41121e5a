// Attention without the S x T matrix: blocks of keys with a running softmax (Milakov and
// Gimelshein 2018; Dao et al. 2022), one instruction set a file.
#pragma once

#include <cstddef>
#include <cstdint>

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
};

// Rewrites `n` scores of query row `row` ([batch, head, query] flattened) from key `key` on.
struct ScoreHook {
  void (*rewrite)(void* context, int64_t row, int64_t key, int64_t n, float* scores) = nullptr;
  void* context = nullptr;
};

constexpr int64_t query_block = 48;  // rows of one task: a multiple of the micro kernel's 6
constexpr int64_t key_block = 128;

inline int64_t query_rows(const AttentionShape& s) { return s.heads / s.kv_heads * s.queries; }
inline int64_t query_blocks(const AttentionShape& s) {
  return (query_rows(s) + query_block - 1) / query_block;
}

// Bytes of scratch for each thread.
size_t attention_scratch(const AttentionShape& shape);

// One block of query rows: rows of all query heads that share key/value head (task's).
using AttentionBlock = void (*)(const AttentionShape& shape, const void* q, const void* k,
                                const void* v, void* y, int64_t task, float* scratch,
                                const ScoreHook& hook);

extern const AttentionBlock attention_portable, attention_avx2, attention_avx512;

}  // namespace rlx::cpu
