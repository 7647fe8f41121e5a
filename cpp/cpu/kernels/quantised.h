// Matrices of quantised weights: (code - zero) * scale by tiles of the matrix, read as they lie.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

namespace rlx::cpu {

// n rows of k values; values of less than a byte lie side by side, the first in the lowest bits.
struct Quantised {
  DType type = DType::none, scale_type = DType::none, zero_type = DType::none;
  int64_t n = 0, k = 0, row_bytes = 0;
  int64_t block_n = 1, block_k = 1;  // a scale is for so many rows and values of a row
  int64_t scale_row = 0;             // scales from one row of tiles to the next; 0: only one
  bool one_zero = false;             // one zero point for all
  const std::byte* codes = nullptr;
  const void* scales = nullptr;
  const void* zeros = nullptr;  // null: none

  int64_t place(int64_t row, int64_t block) const { return row / block_n * scale_row + block; }
  float scale(int64_t place) const;
  float zero(int64_t place) const;
  // The same for matrix i of several.
  Quantised matrix(int64_t i, int64_t code_bytes, int64_t scale_count) const;
};

// to[r * ld + i] for the rows [begin, end).
void dequantise(const Quantised& q, int64_t begin, int64_t end, float* to, int64_t ld);

// y[r, :] = a[r, :] times the transpose of the matrix, for at most most_gemv_rows rows of a.
constexpr int64_t most_gemv_rows = 4;
struct QuantisedGemv {
  Quantised b;
  int64_t rows = 0;
  DType a_type = DType::float32;
  const void* a = nullptr;  // dense
  float* y = nullptr;       // rows ldy apart
  int64_t ldy = 0;
  float alpha = 1;
  void* workspace = nullptr;  // gemv_workspace bytes
  int threads = 1;
};
// Whether there is a kernel for its type and tiles.
bool gemv_takes(const Quantised& b);
size_t gemv_workspace(const Quantised& b, int64_t rows);
void gemv(const QuantisedGemv& call);

}  // namespace rlx::cpu
