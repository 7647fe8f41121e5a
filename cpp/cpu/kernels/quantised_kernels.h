// What each instruction set contributes to products by quantised weights.
// Known to quantised.cpp and the quantised_<isa>.cpp files only.
#pragma once

#include "cpu/kernels/quantised.h"

namespace rlx::cpu {

// A product of a few rows as the inner kernels want it.
struct GemvBlock {
  Quantised b;
  int64_t rows = 0, blocks = 0;  // of a; of a row of b
  const float* a = nullptr;      // in the order of `arrange`, padded by zeros, rows lda apart
  int64_t lda = 0;
  const float* sums = nullptr;  // of a over each block, rows `blocks` apart
  float* y = nullptr;
  int64_t ldy = 0;
  float alpha = 1;
};

struct QuantisedTable {
  int lanes;  // values of a vector: what a chunk of codes is cut into
  // Columns [begin, end) of y, one kernel for 2, 4 and 8 bits and one for float4e2m1.
  void (*bits2)(const GemvBlock& block, int64_t begin, int64_t end);
  void (*bits4)(const GemvBlock& block, int64_t begin, int64_t end);
  void (*bits8)(const GemvBlock& block, int64_t begin, int64_t end);
  void (*e2m1)(const GemvBlock& block, int64_t begin, int64_t end);
};

extern const QuantisedTable quantised_table_portable, quantised_table_avx2,
    quantised_table_avx512;

}  // namespace rlx::cpu
