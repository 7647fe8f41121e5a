// Products by quantised weights, or by the weights of each row's group, and what dequantises.
#pragma once

#include "kernels/params/region.h"

namespace rlx::params {

// Matrices of n rows of k codes; (code - zero) * scale, each for block_n x block_k codes.
struct Quantised {
  const void* codes = nullptr;
  const void* scales = nullptr;
  const void* zeros = nullptr;
  long long n = 0, k = 0;
  long long row = 0, matrix = 0;  // bytes from one row, one matrix to the next
  long long scale_row = 0, scale_matrix = 0;
  long long block_k = 1, block_n = 1;
  long long zero_step = 0;  // 0: one zero point for all
};

struct MatMulDequant {
  Region out;
  Quantised b;
  const void* a = nullptr;  // rows of k values, a_row apart
  const void* groups = nullptr;   // of each row: its matrix
  const int* places = nullptr;    // rows in the order of their groups,
  const int* starts = nullptr;    // and where each group begins there; one more than groups
  unsigned long long* fault = nullptr;
  long long m = 0, a_row = 0, group_count = 0;
  float alpha = 1;
};

struct Dequantise {
  Quantised b;
  void* y = nullptr;  // [matrices, n, k]
  long long matrices = 1;
};

struct GroupRows {
  const void* groups = nullptr;
  int* places = nullptr;
  int* starts = nullptr;
  unsigned long long* fault = nullptr;
  long long rows = 0, group_count = 0;
};

}  // namespace rlx::params
