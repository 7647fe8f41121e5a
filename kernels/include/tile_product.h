// A 64 x 64 tile of a product by 256 threads, each 4 x 4 of it; slices of 16 in shared memory.
#pragma once

#include "kernels/include/platform.h"
#include "kernels/include/scalar_ops.h"

namespace rlx {

template <class T> struct TileProduct {
  static constexpr int m = 64, n = 64, k = 16, threads = 256, each = 4;

  struct Slices {  // one column more than needed: neighbours lie in other banks
    T a[k][m + 1], b[k][n + 1];
  };

  T sum[each][each] = {};
  int row, column;  // of the thread's part

  __device__ explicit TileProduct(int thread)
      : row(thread / 16 * each), column(thread % 16 * each) {}

  __device__ void add(const Slices& slices) {
#pragma unroll
    for (int i = 0; i < k; ++i) {
      T x[each], y[each];
#pragma unroll
      for (int r = 0; r < each; ++r) x[r] = slices.a[i][row + r];
#pragma unroll
      for (int c = 0; c < each; ++c) y[c] = slices.b[i][column + c];
#pragma unroll
      for (int r = 0; r < each; ++r) {
#pragma unroll
        for (int c = 0; c < each; ++c) {
          sum[r][c] = scalar::add(scalar::mul(x[r], y[c]), sum[r][c]);
        }
      }
    }
  }
};

}  // namespace rlx
