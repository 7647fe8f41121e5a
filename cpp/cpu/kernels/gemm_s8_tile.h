// The inner loops of 8-bit products over a set of instructions.
//
// Instructions is a type of the including file: Vec (sums of `lanes` columns), widen (2 * lanes
// bytes of B to 16 bits), pair (one pair of A in every lane) and dot (adds pairs of products).
#pragma once

#include <cstring>

#include "cpu/kernels/gemm_s8_kernels.h"

namespace rlx::cpu::s8 {

template <class Instructions, int rows, int vectors, int panels>
static void tile(const S8Block& block, const int16_t* a, const int8_t* b, int32_t* c,
                 int64_t cols) {
  constexpr int lanes = Instructions::lanes, count = vectors * panels;
  using Vec = typename Instructions::Vec;
  Vec sum[rows][count] = {};
  for (int64_t k = 0; k < block.pairs; ++k, a += 2, b += 2 * vectors * lanes) {
    typename Instructions::Wide right[count];
#pragma GCC unroll 8
    for (int v = 0; v < count; ++v) {
      right[v] = Instructions::widen(b + v / vectors * block.b_panel + v % vectors * 2 * lanes);
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const auto left = Instructions::pair(a + r * block.a_ld);
#pragma GCC unroll 8
      for (int v = 0; v < count; ++v) {
        sum[r][v] = Instructions::dot(sum[r][v], left, right[v]);
      }
    }
  }
  int32_t part[rows][count * lanes];
  std::memcpy(part, sum, sizeof(part));
  const int64_t width = cols < count * lanes ? cols : count * lanes;
  for (int r = 0; r < rows; ++r, c += block.ldc) {
    for (int64_t j = 0; j < width; ++j) {
      c[j] = int32_t(uint32_t(part[r][j]) + (block.accumulate ? uint32_t(c[j]) : 0u));
    }
  }
}

template <class Instructions, int rows, int vectors>
static void tile_of_height(const S8Block& block, int64_t row, int64_t count, const int8_t* b,
                           int64_t col) {
  if constexpr (rows > 1) {
    if (count < rows) {
      return tile_of_height<Instructions, rows - 1, vectors>(block, row, count, b, col);
    }
  }
  tile<Instructions, rows, vectors, 1>(block, block.a + row * block.a_ld, b,
                                       block.c + row * block.ldc + col, block.cols - col);
}

// Panel after panel; all rows pass while a panel is in the first-level cache.
template <class Instructions, int rows, int vectors>
static void multiply(const S8Block& block) {
  constexpr int width = vectors * Instructions::lanes;
  const int8_t* b = block.b;
  int64_t col = 0;
  if (block.rows == 1) {  // several panels at once keep the multipliers busy
    for (; block.cols - col > 3 * width; col += 4 * width, b += 4 * block.b_panel) {
      tile<Instructions, 1, vectors, 4>(block, block.a, b, block.c + col, block.cols - col);
    }
  }
  for (; col < block.cols; col += width, b += block.b_panel) {
    for (int64_t row = 0; row < block.rows; row += rows) {
      const int64_t left = block.rows - row;
      tile_of_height<Instructions, rows, vectors>(block, row, left < rows ? left : rows, b, col);
    }
  }
}

template <class Instructions, int rows, int vectors>
constexpr S8Kernels kernels() {
  return {rows, vectors * Instructions::lanes, multiply<Instructions, rows, vectors>, nullptr};
}

}  // namespace rlx::cpu::s8
