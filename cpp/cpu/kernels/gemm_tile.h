// The inner loops of every matrix product: small register tiles of C over packed panels of B.
//
// `bytes` is the width of a vector, T its element; see gemm_vector.h.
#pragma once

#include "cpu/kernels/gemm_vector.h"

namespace rlx::cpu::tile {

// The rightmost tile: the part of `sum` (width values a row) that lies inside C.
template <class T>
[[gnu::noinline]] static void finish_edge(const Block<T>& block, T* c, const T* bias, const T* sum,
                                          int rows, int width, int64_t cols) {
  for (int r = 0; r < rows; ++r, c += block.ldc, sum += width) {
    for (int64_t j = 0; j < cols; ++j) {
      c[j] = sum[j] * block.alpha + (block.accumulate ? c[j] : bias ? bias[j] : T{});
    }
  }
}

template <class T, int bytes, int rows, int vectors>
[[gnu::always_inline]] static inline void finish(const Block<T>& block, T* c, const T* bias,
                                                 const Vec<T, bytes> (&sum)[rows][vectors],
                                                 int64_t cols) {
  constexpr int lanes = bytes / sizeof(T);
  using V = Vec<T, bytes>;
  if (cols < vectors * lanes) {
    T part[rows * vectors * lanes];
#pragma GCC unroll 64
    for (int i = 0; i < rows * vectors; ++i) {
      store<T, bytes>(part + i * lanes, sum[i / vectors][i % vectors]);
    }
    finish_edge<T>(block, c, bias, part, rows, vectors * lanes, cols);
  } else if (block.accumulate) {
#pragma GCC unroll 64
    for (int i = 0; i < rows * vectors; ++i) {
      T* to = c + i / vectors * block.ldc + i % vectors * lanes;
      store<T, bytes>(to, load<T, bytes>(to) + sum[i / vectors][i % vectors] * block.alpha);
    }
  } else {
#pragma GCC unroll 64
    for (int i = 0; i < rows * vectors; ++i) {
      const int v = i % vectors;
      const V start = bias ? load<T, bytes>(bias + v * lanes) : V{};
      store<T, bytes>(c + i / vectors * block.ldc + v * lanes,
                      start + sum[i / vectors][v] * block.alpha);
    }
  }
}

// `rows` rows by `vectors` vectors of C, kept in registers over all of k.
template <class T, int bytes, int rows, int vectors, int panels = 1>
[[gnu::always_inline]] static inline void multiply(const Block<T>& block, const T* a, const T* b,
                                                   T* c, const T* bias, int64_t cols) {
  constexpr int lanes = bytes / sizeof(T);
  using V = Vec<T, bytes>;
  V sum[rows][panels * vectors] = {};
  const int64_t lda = block.lda, step = block.b_step, panel = block.b_panel;
  for (int64_t k = 0; k < block.k; ++k) {
    if constexpr (panels == 1) __builtin_prefetch(b + 16 * step);
    V right[panels * vectors];
#pragma GCC unroll 8
    for (int p = 0; p < panels; ++p) {
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) {
        right[p * vectors + v] = load<T, bytes>(b + p * panel + v * lanes);
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < panels * vectors; ++v) sum[r][v] += right[v] * a[r * lda];
    }
    ++a;
    b += step;
  }
  finish<T, bytes, rows, panels * vectors>(block, c, bias, sum, cols);
}

// A few rows by all columns: several panels at once keep the multipliers busy.
template <class T, int bytes, int rows, int vectors, int panels>
static inline void strip(const Block<T>& block) {
  constexpr int width = vectors * bytes / sizeof(T);
  const T* b = block.b;
  int64_t col = 0;
  const auto bias = [&] { return block.bias ? block.bias + col : nullptr; };
  for (; block.cols - col > (panels - 1) * width; col += panels * width) {
    multiply<T, bytes, rows, vectors, panels>(block, block.a, b, block.c + col, bias(),
                                              block.cols - col);
    b += panels * block.b_panel;
  }
  for (; col < block.cols; col += width) {
    multiply<T, bytes, rows, vectors>(block, block.a, b, block.c + col, bias(), block.cols - col);
    b += block.b_panel;
  }
}

// One panel by `count` rows from the row `row` on, count <= rows: picks the tile of that height.
template <class T, int bytes, int rows, int vectors>
static inline void rows_of_panel(const Block<T>& block, int64_t row, int64_t count, const T* b,
                                 int64_t col) {
  if constexpr (rows > 1) {
    if (count < rows) return rows_of_panel<T, bytes, rows - 1, vectors>(block, row, count, b, col);
  }
  const T* bias = block.bias ? block.bias + col : nullptr;
  T* c = block.c + row * block.ldc + col;
  const T* a = block.a + row * block.lda;
  constexpr int half = vectors / 2;
  if (half > 0 && block.cols - col <= half * int(bytes / sizeof(T))) {
    multiply<T, bytes, rows, (half > 0 ? half : 1)>(block, a, b, c, bias, block.cols - col);
  } else {
    multiply<T, bytes, rows, vectors>(block, a, b, c, bias, block.cols - col);
  }
}

// Asks for the part of the next panel that belongs to rows [row, row + count) of block.rows, so
// that all of it is near when its turn comes, and for the tile of C that comes now.
template <class T>
[[gnu::always_inline]] static inline void prefetch(const Block<T>& block, int64_t row,
                                                   int64_t count, const T* b, const T* c) {
  constexpr int64_t line = 64 / sizeof(T);
  const int64_t panel = block.k * block.b_step;
  const T* end = b + block.b_panel + panel * (row + count) / block.rows;
  const T* next = b + block.b_panel + panel * row / block.rows;
  for (; next < end; next += line) __builtin_prefetch(next, 0, 2);
  for (int64_t r = 0; r < count; ++r) __builtin_prefetch(c + (row + r) * block.ldc, 1, 3);
}

// Panel after panel; all rows pass while a panel is in the first-level cache.
template <class T, int bytes, int rows, int vectors>
static void multiply_block(const Block<T>& block) {
  constexpr int width = vectors * bytes / int(sizeof(T));
  // With few rows a panel is read only once, in order, which needs no help.
  const bool ahead = block.b_step == width && block.rows > 2 * rows;
  if (block.rows == 1) return strip<T, bytes, 1, vectors, 4>(block);
  if (block.rows == 2) return strip<T, bytes, 2, vectors, 2>(block);
  if (block.rows == 3) return strip<T, bytes, 3, vectors, 2>(block);
  const T* b = block.b;
  for (int64_t col = 0; col < block.cols; col += width) {
    int64_t row = 0;
    while (row < block.rows) {
      // A last tile of one or two rows wastes latency: share the last two tiles' rows evenly.
      const int64_t left = block.rows - row;
      int64_t count = left < rows ? left : rows;
      if (left > rows && left - rows <= rows / 3) count = (left + 1) / 2;
      if (ahead) prefetch(block, row, count, b, block.c + col);
      rows_of_panel<T, bytes, rows, vectors>(block, row, count, b, col);
      row += count;
    }
    b += block.b_panel;
  }
}

}  // namespace rlx::cpu::tile
