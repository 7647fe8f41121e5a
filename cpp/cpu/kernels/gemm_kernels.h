// What each instruction set contributes to matrix products: a table of inner kernels.
// Known to gemm.cpp and the gemm_<isa>.cpp files only.
#pragma once

#include <cstdint>

#include "cpu/kernels/gemm.h"

namespace rlx::cpu {

// c[rows, cols] = (accumulate ? c : bias or 0) + alpha * a[rows, k] * b[k, cols], where columns
// of b stand in panels of Kernels::cols and must be readable up to a whole panel.
template <class T>
struct Block {
  const T* a = nullptr;  // row-major
  int64_t lda = 0;
  const T* b = nullptr;
  int64_t b_step = 0;   // from one row of a panel to the next
  int64_t b_panel = 0;  // from one panel to the next
  const T* next = nullptr;  // the panel that will be read after the last one, if known
  T* c = nullptr;
  int64_t ldc = 0;
  const T* bias = nullptr;  // cols values
  int64_t rows = 0, cols = 0, k = 0;
  T alpha = 1;
  bool accumulate = false;
};

// A finished block of C, with its own part of the residual.
struct EpilogueBlock {
  float* c = nullptr;
  int64_t ldc = 0, rows = 0, cols = 0;
  const float* residual = nullptr;
  int64_t residual_ld = 0;
  bool residual_first = false;  // before the activation
  Activation activation = Activation::none;
  float low = 0, high = 0;
};

template <class T>
struct GemmKernels {
  int rows, cols;  // of the register tile; cols is the panel width
  void (*multiply)(const Block<T>& block);
  // The same for at most 4 rows and b stored [cols, k] with rows b_step apart.
  void (*dot)(const Block<T>& block);
  // The same for few rows and b stored [k, cols] with rows b_step apart; never accumulates.
  void (*stream)(const Block<T>& block);
  // to[j * to_ld + i] = from[i * from_ld + j] for i < rows, j < cols.
  void (*transpose)(const T* from, int64_t from_ld, int64_t rows, int64_t cols, T* to,
                    int64_t to_ld);
};

struct FloatKernels {
  void (*epilogue)(const EpilogueBlock& block);
  void (*widen)(DType type, const void* from, int64_t count, float* to);   // 16 bits to 32
  void (*narrow)(DType type, const float* from, int64_t count, void* to);  // rounds to even
};

struct GemmTable {
  GemmKernels<float> f32;
  GemmKernels<double> f64;
  GemmKernels<uint32_t> u32;
  GemmKernels<uint64_t> u64;
  FloatKernels floats;
};

extern const GemmTable gemm_table_portable, gemm_table_avx2, gemm_table_avx512;

// The table for the instruction set in force.
const GemmTable& gemm_table();

}  // namespace rlx::cpu
