// Products of few rows: weights, quantised or plain, are read once at the speed of memory; the
// warps of a block share columns and cut the sum, or have columns of their own. With groups each
// row has weights of its own.
#include "generated/out.h"
#include "kernels/include/dequant.h"
#include "kernels/include/warp.h"

namespace {

using rlx::params::MatMulDequant;
using A = RLX_A;
using T = RLX_ACCUMULATE;
using Index = unsigned long long;
#if RLX_GROUPS
using I = RLX_I;
#endif
constexpr int rows = RLX_ROWS, columns = 2, warps = 4, split = RLX_SPLIT, run = RLX_RUN;
constexpr int piece = run < RLX_A_RUN ? run : RLX_A_RUN;  // of a, as one word

RLX_FN void load_row(const A* from, long long k, long long end, T (&x)[piece]) {
  A raw[piece] = {};
  if (k + piece <= end) {
    rlx::load_run<piece>(raw, from + k);
  } else {
#pragma unroll
    for (int i = 0; i < piece; ++i) {
      if (k + i < end) raw[i] = from[k + i];
    }
  }
#pragma unroll
  for (int i = 0; i < piece; ++i) x[i] = T(rlx::Element<A>::load(raw[i]));
}

// The part of the sums that this lane has.
RLX_FN void add_up(const MatMulDequant& p, long long matrix, long long m0, long long n0,
                   long long first, T (&sum)[rows][columns]) {
  for (long long k = first; k < p.b.k; k += (long long)(split) * rlx::warp_size * run) {
    T w[columns][run];
#pragma unroll
    for (int c = 0; c < columns; ++c) {
      const long long n = n0 + c < p.b.n ? n0 + c : p.b.n - 1;
      rlx::load_weights<T, RLX_B, RLX_SCALE, RLX_ZERO, RLX_QUANTISED, RLX_ZEROS, RLX_EVEN>(
          p.b, matrix, n, k, w[c]);
    }
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      const long long m = m0 + r < p.m ? m0 + r : p.m - 1;
      const A* from = static_cast<const A*>(p.a) + m * p.a_row;
#pragma unroll
      for (int i = 0; i < run; i += piece) {
        T x[piece];
        load_row(from, k + i, p.b.k, x);
#pragma unroll
        for (int j = 0; j < piece; ++j) {
#pragma unroll
          for (int c = 0; c < columns; ++c) sum[r][c] += x[j] * w[c][i + j];
        }
      }
    }
  }
}

RLX_FN void write(const MatMulDequant& p, long long m, long long n, T (&sum)[columns]) {
  constexpr int vector = RLX_VECTOR;
  if (m >= p.m) return;
#pragma unroll
  for (int c = 0; c < columns; ++c) sum[c] = sum[c] * T(p.alpha);
#pragma unroll
  for (int c = 0; c < columns; c += vector) {
    if (n + c < p.b.n) rlx::out::run<vector>(p.out, rlx::out::Index(m * p.b.n + n + c), &sum[c]);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(128) matmul_few(const MatMulDequant p) {
  constexpr int across = columns * (split > 1 ? 1 : warps);
  const Index wide = Index(p.b.n + across - 1) / across, block = rlx::block_rank();
  const long long m0 = (long long)(block / wide) * rows;
  if (m0 >= p.m) return;
  const int part = split > 1 ? rlx::warp_id() : 0;
  const long long n0 =
      (long long)(block % wide) * across + (split > 1 ? 0 : rlx::warp_id() * columns);
  long long matrix = 0;
#if RLX_GROUPS
  matrix = (long long)(static_cast<const I*>(p.groups)[m0]);
  if (matrix < 0 || matrix >= p.group_count) {
    if (threadIdx.x == 0) atomicOr(p.fault, 1ull);
    matrix = 0;
  }
#endif
  T sum[rows][columns] = {};
  if (n0 < p.b.n) {
    add_up(p, matrix, m0, n0, (long long)(part * rlx::warp_size + rlx::lane_id()) * run, sum);
  }
#pragma unroll
  for (int r = 0; r < rows; ++r) {
#pragma unroll
    for (int c = 0; c < columns; ++c) sum[r][c] = rlx::warp_reduce(sum[r][c], rlx::add_values<T>);
  }
  if constexpr (split > 1) {
    __shared__ T parts[split][rows][columns];
    if (rlx::lane_id() == 0) {
#pragma unroll
      for (int r = 0; r < rows; ++r) {
#pragma unroll
        for (int c = 0; c < columns; ++c) parts[part][r][c] = sum[r][c];
      }
    }
    __syncthreads();
    if (part != 0) return;
#pragma unroll
    for (int r = 0; r < rows; ++r) {
#pragma unroll
      for (int c = 0; c < columns; ++c) {
        for (int s = 1; s < split; ++s) sum[r][c] += parts[s][r][c];
      }
    }
  }
  if (rlx::lane_id() != 0 || n0 >= p.b.n) return;
#pragma unroll
  for (int r = 0; r < rows; ++r) write(p, m0 + r, n0, sum[r]);
}
