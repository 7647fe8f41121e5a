// What the kernels for few query rows share: a warp takes rows of the query heads that share a key
// head and a way through a part of the keys; the warps' states are joined at the end.
#pragma once

#include "kernels/include/element.h"
#include "kernels/include/mma.h"
#include "kernels/include/reduce_kinds.h"
#include "kernels/include/warp.h"
#include "kernels/params/attention.h"

namespace rlx::rows {

using params::Attention;
constexpr int warps = 8, threads = warps * 32;

RLX_FN float larger(float a, float b) { return a > b || a != a ? a : b; }

// What weighs e^from when the largest is e^to; nothing while every key is hidden.
RLX_FN float factor(float from, float to) {
  return from == lowest_value<float>() ? 0.0f : fast_exp2((from - to) * 1.44269504f);
}

// Row r of the rows that read a key head: its heads side by side, then the next query.
struct Row {
  long long head, query;
};
RLX_FN int row_count(const Attention& p) { return int(p.queries * (p.heads / p.kv_heads)); }
RLX_FN Row row_of(const Attention& p, long long kv_head, int r) {
  const int ratio = int(p.heads / p.kv_heads);
  return {kv_head * ratio + r % ratio, r / ratio};
}
RLX_FN long long line_of(const Attention& p, long long image, const Row& row) {
  return (image * p.heads + row.head) * p.queries + row.query;
}

struct Place {  // of a warp
  long long image, kv_head, begin, end;  // keys
  int part, row, way, ways;              // its first row
};

template <int each> RLX_FN Place place_of(const Attention& p) {
  const int all = row_count(p), groups = p.row_groups;
  const int row_blocks = (all + each * groups - 1) / (each * groups);
  unsigned long long rest = block_rank();
  Place at;
  at.part = int(rest % p.parts);
  rest /= p.parts;
  at.row = (int(rest % row_blocks) * groups + warp_id() % groups) * each;
  rest /= row_blocks;
  at.kv_head = (long long)(rest % p.kv_heads);
  at.image = (long long)(rest / p.kv_heads);
  at.way = warp_id() / groups;
  at.ways = warps / groups;
  at.begin = at.part * p.part;
  at.end = at.begin + p.part < p.keys ? at.begin + p.part : p.keys;
#if RLX_CAUSAL
  const int last = at.row + each < all ? at.row + each - 1 : all - 1;
  const long long seen = row_of(p, at.kv_head, last).query + p.causal_offset + 1;
  at.end = seen < at.end ? seen : at.end;
#endif
  if (at.row >= all) at.end = at.begin;
  return at;
}

template <class T>
RLX_FN const T* head_of(const Place& at, const void* from, const params::HeadStrides& strides) {
  return static_cast<const T*>(from) + (at.image * strides.batch + at.kv_head * strides.head);
}
template <class T> RLX_FN const T* query_of(const Attention& p, const Place& at, int r) {
  const Row row = row_of(p, at.kv_head, r);
  return static_cast<const T*>(p.q) + (at.image * p.q_strides.batch +
                                       row.head * p.q_strides.head +
                                       row.query * p.q_strides.row);
}

// The score that the softmax sees: scaled, modified, and -infinity where it is hidden.
RLX_FN float score_of(const Attention& p, const Place& at, int r, long long key, float product) {
  if (key >= at.end || r >= row_count(p)) return lowest_value<float>();
  float x[1] = {product * p.scale};
#if RLX_CAUSAL || RLX_SCORE
  const Row row = row_of(p, at.kv_head, r);
#endif
#if RLX_CAUSAL
  if (key > row.query + p.causal_offset) return lowest_value<float>();
#endif
#if RLX_SCORE
  const float given[1] = {x[0]};
  const auto index = score::Index(line_of(p, at.image, row) * p.keys + key);
  score::values<1>(p.score, index, given, x);
#endif
  return x[0];
}

// The states of all warps in shared memory: `each` rows of sums, then each row's largest score, its
// weights, and what they weigh beside the other warps'.
template <int each> struct Shared {
  float* memory;
  int width;
};
struct WarpRow {
  float top, total, weight;
};
template <int each> RLX_FN float& sum_of(const Shared<each>& s, int warp, int r, int c) {
  return s.memory[(warp * each + r) * s.width + c];
}
template <int each> RLX_FN WarpRow& warp_row(const Shared<each>& s, int warp, int r) {
  return reinterpret_cast<WarpRow*>(s.memory + warps * each * s.width)[warp * each + r];
}

template <int each> RLX_FN float top_of(const Attention& p, const Shared<each>& shared, int r) {
  float top = lowest_value<float>();
#pragma unroll
  for (int k = 0; k < warps; ++k) {
    const int w = r / each + k * p.row_groups;
    if (w < warps) top = larger(top, warp_row(shared, w, r % each).top);
  }
  return top;
}

// Joins the warps that share rows, and writes y, or what attention_join.cu joins.
template <int each, class T>
RLX_FN void write(const Attention& p, const Place& at, const Shared<each>& shared) {
  __syncthreads();
  const int groups = p.row_groups, width = p.value_depth, all = row_count(p);
  const int first = at.row - warp_id() % groups * each;  // of the block
  if (threadIdx.x < warps * each) {
    const int w = int(threadIdx.x) / each, r = int(threadIdx.x) % each;
    const float top = top_of(p, shared, w % groups * each + r);
    warp_row(shared, w, r).weight = factor(warp_row(shared, w, r).top, top);
  }
  __syncthreads();
  for (int i = int(threadIdx.x); i < groups * each * width; i += threads) {
    const int r = i / width, c = i % width;
    if (first + r >= all) return;
    float total = 0.0f, sum = 0.0f;
#pragma unroll
    for (int k = 0; k < warps; ++k) {
      const int w = r / each + k * groups;
      if (w >= warps) continue;
      const WarpRow& state = warp_row(shared, w, r % each);
      total += state.total * state.weight;
      sum += sum_of(shared, w, r % each, c) * state.weight;
    }
    const Row row = row_of(p, at.kv_head, first + r);
    if (p.parts == 1) {  // a row that sees no key is 0 / 0
      store(static_cast<T*>(p.y) + (at.image * p.y_strides.batch + row.head * p.y_strides.head +
                                    row.query * p.y_strides.row + c), sum / total);
      continue;
    }
    const long long lines = p.batch * p.heads * p.queries;
    const long long slot = line_of(p, at.image, row) * p.parts + at.part;
    p.partial[slot * width + c] = sum;
    if (c == 0) {
      float* state = p.partial + (lines * p.parts * width + slot * 2);
      state[0] = top_of(p, shared, r), state[1] = total;
    }
  }
}

}  // namespace rlx::rows
