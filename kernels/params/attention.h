// Attention of any head dims: strides by element, [batch, head, row] each, values contiguous.
#pragma once

#include "kernels/params/region.h"

namespace rlx::params {

struct HeadStrides {
  long long batch = 0, head = 0, row = 0;
};

struct Attention {
  Region score;  // over [batch, heads, queries, keys]; load 0 is the scaled score
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  void* y = nullptr;
  HeadStrides q_strides, k_strides, v_strides, y_strides;
  long long batch = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0;
  int depth = 0, value_depth = 0;
  long long causal_offset = 0;  // key j is seen by query i while j <= i + offset
  float scale = 1;
  // Few rows: the keys in `parts` of `part`, whose sums lie in `partial` for attention_join.cu;
  // `row_groups` warps of a block side by side take other rows of the same keys.
  float* partial = nullptr;
  long long part = 0;
  int parts = 1, row_groups = 1;
};

}  // namespace rlx::params
