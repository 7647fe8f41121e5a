// Attention blocks of every instruction set against softmax(q k^T) v in double.
#include <cmath>
#include <random>
#include <vector>

#include "check.h"
#include "core/cpuid.h"
#include "cpu/kernels/attention.h"

namespace {

using namespace rlx;
using namespace rlx::cpu;

struct Case {
  int64_t batch, heads, kv_heads, queries, keys, depth, value_depth;
  bool causal, heads_first;
  int threads = 2;
};

HeadStrides strides(int64_t heads, int64_t rows, int64_t depth, bool heads_first) {
  if (heads_first) return {heads * rows * depth, rows * depth, depth};
  return {heads * rows * depth, depth, heads * depth};
}

std::vector<float> random_values(size_t n, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> x(n);
  for (float& v : x) v = normal(random);
  return x;
}

// One output row by the definition.
std::vector<double> expected(const AttentionShape& s, const float* q, const float* k,
                             const float* v, int64_t query) {
  std::vector<double> p(size_t(s.keys)), y(size_t(s.value_depth), 0.0);
  double top = -INFINITY, total = 0.0;
  for (int64_t j = 0; j < s.keys; ++j) {
    double dot = 0.0;
    for (int64_t d = 0; d < s.depth; ++d) dot += double(q[d]) * double(k[j * s.k.row + d]);
    const bool masked = s.causal && j > query + s.causal_offset;
    p[size_t(j)] = masked ? -INFINITY : dot * double(s.scale);
    top = std::max(top, p[size_t(j)]);
  }
  for (double& x : p) total += x = std::exp(x - top);
  for (int64_t j = 0; j < s.keys; ++j) {
    for (int64_t c = 0; c < s.value_depth; ++c) {
      y[size_t(c)] += p[size_t(j)] / total * double(v[j * s.v.row + c]);
    }
  }
  return y;
}

void run_case(const Case& c, AttentionBlock block) {
  std::mt19937 random(7);
  AttentionShape s;
  s.batch = c.batch, s.heads = c.heads, s.kv_heads = c.kv_heads;
  s.queries = c.queries, s.keys = c.keys, s.depth = c.depth, s.value_depth = c.value_depth;
  s.scale = 0.3f, s.causal = c.causal, s.causal_offset = c.keys - c.queries;
  s.q = strides(c.heads, c.queries, c.depth, c.heads_first);
  s.k = strides(c.kv_heads, c.keys, c.depth, c.heads_first);
  s.v = strides(c.kv_heads, c.keys, c.value_depth, c.heads_first);
  s.y = strides(c.heads, c.queries, c.value_depth, !c.heads_first);
  const auto q = random_values(size_t(c.batch * s.q.batch), random);
  const auto k = random_values(size_t(c.batch * s.k.batch), random);
  const auto v = random_values(size_t(c.batch * s.v.batch), random);
  divide_attention(s, c.threads);
  std::vector<float> y(size_t(c.batch * s.y.batch), NAN);
  std::vector<float> scratch(size_t(attention_scratch(s).size), NAN);
  for (int64_t task = 0; task < attention_tasks(s); ++task) {
    block(s, q.data(), k.data(), v.data(), y.data(), task, scratch.data(), {});
  }
  const int64_t group = c.heads / c.kv_heads;
  double worst = 0.0;
  for (int64_t b = 0; b < c.batch; ++b) {
    for (int64_t h = 0; h < c.heads; ++h) {
      for (int64_t i = 0; i < c.queries; ++i) {
        const float* row = q.data() + b * s.q.batch + h * s.q.head + i * s.q.row;
        const auto want = expected(s, row, k.data() + b * s.k.batch + h / group * s.k.head,
                                   v.data() + b * s.v.batch + h / group * s.v.head, i);
        const float* got = y.data() + b * s.y.batch + h * s.y.head + i * s.y.row;
        for (size_t d = 0; d < want.size(); ++d) {
          const double error = std::abs(double(got[d]) - want[d]);
          worst = error <= worst ? worst : error;  // a NaN stays
        }
      }
    }
  }
  test::check(worst < 5e-6);
}

const test::Test matches{"attention matches its definition", [] {
  const Case cases[] = {
      {1, 1, 1, 1, 1, 1, 1, false, true},      {2, 3, 3, 7, 9, 5, 3, false, true},
      {1, 12, 12, 50, 130, 64, 64, false, false}, {2, 8, 2, 1, 300, 64, 64, true, true},
      {1, 4, 4, 129, 129, 32, 40, true, false},   {1, 6, 3, 100, 257, 80, 96, true, true},
      {1, 2, 1, 5, 129, 16, 17, false, false},
      {1, 1, 1, 500, 300, 24, 24, false, true, 4}, {1, 2, 2, 256, 77, 29, 29, false, false},
      {1, 4, 1, 1, 260, 20, 40, false, true},      {1, 3, 1, 1, 131, 9, 48, true, false},
      {2, 1, 1, 2, 140, 64, 56, true, true},       {1, 1, 1, 300, 300, 40, 8, true, true, 1},
  };
  for (const Case& c : cases) {
    run_case(c, attention_portable);
    if (cpu_isa() >= Isa::avx2) run_case(c, attention_avx2);
    if (cpu_isa() >= Isa::avx512) run_case(c, attention_avx512);
  }
}};

}  // namespace
