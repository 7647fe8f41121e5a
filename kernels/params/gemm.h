// Sizes and strides of a batched matrix product, shared by the CUDA and the CPU kernels.
#pragma once

namespace rlx::params {

// C[b] = alpha * op(A[b]) * op(B[b]) for each b of a three-dimensional batch, outermost first.
// All strides are in elements; a batch stride of 0 repeats the matrix.
struct Gemm {
  long long m = 0, n = 0, k = 0;
  long long lda = 0, ldb = 0, ldc = 0;  // from one stored row to the next
  bool trans_a = false;                 // A is stored [k, m] rather than [m, k]
  bool trans_b = false;                 // B is stored [n, k] rather than [k, n]
  double alpha = 1;
  long long batch[3] = {1, 1, 1};
  long long a_batch[3] = {0, 0, 0}, b_batch[3] = {0, 0, 0}, c_batch[3] = {0, 0, 0};
};

}  // namespace rlx::params
