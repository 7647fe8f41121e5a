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

// What to ask for while a tile is computed: a line on each step of k, `step` bytes apart.
struct Ahead {
  const char* at = nullptr;
  int64_t step = 0;

  template <class T>
  static Ahead in_panel(const T* b, int64_t b_step) {
    return {reinterpret_cast<const char*>(b + 16 * b_step), b_step * int64_t(sizeof(T))};
  }
};

// `rows` rows by `vectors` vectors of C, kept in registers over all of k.
template <class T, int bytes, int rows, int vectors, int panels = 1>
[[gnu::always_inline]] static inline void multiply(const Block<T>& block, const T* a, const T* b,
                                                   T* c, const T* bias, int64_t cols,
                                                   Ahead ahead = {}) {
  constexpr int lanes = bytes / sizeof(T);
  using V = Vec<T, bytes>;
  V sum[rows][panels * vectors] = {};
  const int64_t lda = block.lda, step = block.b_step, panel = block.b_panel;
  for (int64_t k = 0; k < block.k; ++k) {
    if constexpr (panels == 1) {
      __builtin_prefetch(ahead.at, 0, 2);
      ahead.at += ahead.step;
    }
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
    multiply<T, bytes, rows, vectors>(block, block.a, b, block.c + col, bias(), block.cols - col,
                                      Ahead::in_panel(b, block.b_step));
    b += block.b_panel;
  }
}

// One panel by `count` rows from the row `row` on, count <= rows: picks the tile of that height.
template <class T, int bytes, int rows, int vectors>
static inline void rows_of_panel(const Block<T>& block, int64_t row, int64_t count, const T* b,
                                 int64_t col, Ahead ahead) {
  if constexpr (rows > 1) {
    if (count < rows) {
      return rows_of_panel<T, bytes, rows - 1, vectors>(block, row, count, b, col, ahead);
    }
  }
  const T* bias = block.bias ? block.bias + col : nullptr;
  T* c = block.c + row * block.ldc + col;
  const T* a = block.a + row * block.lda;
  constexpr int half = vectors / 2;
  if (half > 0 && block.cols - col <= half * int(bytes / sizeof(T))) {
    multiply<T, bytes, rows, (half > 0 ? half : 1)>(block, a, b, c, bias, block.cols - col, ahead);
  } else {
    multiply<T, bytes, rows, vectors>(block, a, b, c, bias, block.cols - col, ahead);
  }
}

// Panel after panel; all rows pass while a panel is in the first-level cache.
template <class T, int bytes, int rows, int vectors>
static void multiply_block(const Block<T>& block) {
  constexpr int width = vectors * bytes / int(sizeof(T));
  if (block.rows == 1) return strip<T, bytes, 1, vectors, 4>(block);
  if (block.rows == 2) return strip<T, bytes, 2, vectors, 2>(block);
  if (block.rows == 3) return strip<T, bytes, 3, vectors, 2>(block);
  // Tiles of equal height: a last one of few rows would wait for its own sums.
  const int64_t tiles = (block.rows + rows - 1) / rows;
  // While the tiles of a panel are computed, each asks for its share of the next panel: line by
  // line, since many at once would hold up the loads of the tile.
  constexpr int64_t panel_bytes = vectors * bytes;
  const bool share = block.b_step == width && tiles > 1;
  const T* b = block.b;
  for (int64_t col = 0; col < block.cols; col += width) {
    const T* follows = nullptr;
    if (share) follows = col + width < block.cols ? b + block.b_panel : block.next ? block.next : b;
    int64_t row = 0;
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t count = (block.rows - row + tiles - tile - 1) / (tiles - tile);
      Ahead ahead = Ahead::in_panel(b, block.b_step);
      if (follows) {
        const T* from = follows + block.k * width * tile / tiles;
        ahead = {reinterpret_cast<const char*>(from), (panel_bytes + tiles - 1) / tiles};
      }
      T* c = block.c + row * block.ldc + col;
      for (int64_t r = 0; r < count; ++r) __builtin_prefetch(c + r * block.ldc, 1, 3);
      rows_of_panel<T, bytes, rows, vectors>(block, row, count, b, col, ahead);
      row += count;
    }
    b += block.b_panel;
  }
}

}  // namespace rlx::cpu::tile
