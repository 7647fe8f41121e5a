// Products of a few rows by a B that is read once, as it lies: at the speed of memory.
#pragma once

#include "cpu/kernels/gemm_vector.h"

namespace rlx::cpu::tile {

// rows x cols of C where both A and B are read along k.
template <class T, int bytes, int rows, int cols>
[[gnu::always_inline]] static inline void dot_tile(const Block<T>& block, int64_t col) {
  constexpr int lanes = bytes / sizeof(T);
  const T* b = block.b + col * block.b_step;
  Vec<T, bytes> sum[rows][cols] = {};
  int64_t k = 0;
  for (; k + lanes <= block.k; k += lanes) {
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      const Vec<T, bytes> left = load<T, bytes>(block.a + r * block.lda + k);
#pragma GCC unroll 4
      for (int j = 0; j < cols; ++j) {
        sum[r][j] += left * load<T, bytes>(b + j * block.b_step + k);
      }
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int j = 0; j < cols; ++j) {
      T total{};
      for (int i = 0; i < lanes; ++i) total += sum[r][j][i];
      for (int64_t i = k; i < block.k; ++i) {
        total += block.a[r * block.lda + i] * b[j * block.b_step + i];
      }
      T& c = block.c[r * block.ldc + col + j];
      c = total * block.alpha + (block.accumulate ? c : block.bias ? block.bias[col + j] : T{});
    }
  }
}

template <class T, int bytes, int rows>
static inline void dot_rows(const Block<T>& block) {
  constexpr int together = rows == 1 ? 4 : 2;
  int64_t col = 0;
  for (; col + together <= block.cols; col += together) {
    dot_tile<T, bytes, rows, together>(block, col);
  }
  for (; col < block.cols; ++col) dot_tile<T, bytes, rows, 1>(block, col);
}

template <class T, int bytes>
static void dot_block(const Block<T>& block) {
  switch (block.rows) {
    case 1: return dot_rows<T, bytes, 1>(block);
    case 2: return dot_rows<T, bytes, 2>(block);
    case 3: return dot_rows<T, bytes, 3>(block);
    default: return dot_rows<T, bytes, 4>(block);
  }
}

// Adds `depth` rows of b, scaled by a, to `rows` rows of C; reads b along its rows.
template <class T, int bytes, int rows, int depth>
[[gnu::always_inline]] static inline void add_rows(const Block<T>& block, const T* a, const T* b,
                                                   T* c) {
  constexpr int lanes = bytes / sizeof(T);
  Vec<T, bytes> scale[rows][depth];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (int d = 0; d < depth; ++d) {
      scale[r][d] = Vec<T, bytes>{} + a[r * block.lda + d] * block.alpha;
    }
  }
  int64_t j = 0;
  for (; j + lanes <= block.cols; j += lanes) {
    Vec<T, bytes> sum[rows];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) sum[r] = load<T, bytes>(c + r * block.ldc + j);
#pragma GCC unroll 8
    for (int d = 0; d < depth; ++d) {
      const Vec<T, bytes> right = load<T, bytes>(b + d * block.b_step + j);
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) sum[r] += scale[r][d] * right;
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) store<T, bytes>(c + r * block.ldc + j, sum[r]);
  }
  for (; j < block.cols; ++j) {
    for (int r = 0; r < rows; ++r) {
      for (int d = 0; d < depth; ++d) {
        c[r * block.ldc + j] += scale[r][d][0] * b[d * block.b_step + j];
      }
    }
  }
}

template <class T, int bytes, int depth>
static void add_rows_to_all(const Block<T>& block, int64_t k) {
  const T* b = block.b + k * block.b_step;
  const T* a = block.a + k;
  int64_t r = 0;
  if constexpr (depth <= 2) {
    for (; r + 4 <= block.rows; r += 4) {
      add_rows<T, bytes, 4, depth>(block, a + r * block.lda, b, block.c + r * block.ldc);
    }
  }
  if constexpr (depth <= 4) {
    for (; r + 2 <= block.rows; r += 2) {
      add_rows<T, bytes, 2, depth>(block, a + r * block.lda, b, block.c + r * block.ldc);
    }
  }
  for (; r < block.rows; ++r) {
    add_rows<T, bytes, 1, depth>(block, a + r * block.lda, b, block.c + r * block.ldc);
  }
}

// Eight scales are in registers at a time: 1 row x 8 deep, 2 x 4 or 4 x 2.
template <class T, int bytes>
static void stream_block(const Block<T>& block) {
  for (int64_t r = 0; r < block.rows; ++r) {
    T* c = block.c + r * block.ldc;
    for (int64_t j = 0; j < block.cols; ++j) c[j] = block.bias ? block.bias[j] : T{};
  }
  int64_t k = 0;
  if (block.rows == 1) {
    for (; k + 8 <= block.k; k += 8) add_rows_to_all<T, bytes, 8>(block, k);
  } else if (block.rows < 4) {
    for (; k + 4 <= block.k; k += 4) add_rows_to_all<T, bytes, 4>(block, k);
  }
  for (; k + 2 <= block.k; k += 2) add_rows_to_all<T, bytes, 2>(block, k);
  for (; k < block.k; ++k) add_rows_to_all<T, bytes, 1>(block, k);
}

}  // namespace rlx::cpu::tile
