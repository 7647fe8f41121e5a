// The product that always works: any element type, layout and size, in tiles of shared memory.
#include "generated/out.h"
#include "kernels/include/index.h"
#include "kernels/params/matmul.h"

namespace {

using A = RLX_A;
using B = RLX_B;
using T = RLX_ACCUMULATE;  // products are added in it; integers wrap
using Index = unsigned long long;
constexpr int tile_m = 64, tile_n = 64, tile_k = 16, threads = 256, each = 4;

RLX_FN T times_add(T a, T b, T c) { return rlx::scalar::add(rlx::scalar::mul(a, b), c); }

RLX_FN Index batch_offset(Index batch, const rlx::params::MatMul& p, const long long* strides) {
  Index at = 0;
#pragma unroll
  for (int k = 2; k >= 0; --k) at += rlx::split(batch, p.batch[k]) * Index(strides[k]);
  return at;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads) matmul(const rlx::params::MatMul p) {
  __shared__ T as[tile_k][tile_m + 1];
  __shared__ T bs[tile_k][tile_n + 1];
  const Index columns = Index(p.n + tile_n - 1) / tile_n, rows = Index(p.m + tile_m - 1) / tile_m;
  const Index block = rlx::block_rank(), batch = block / (rows * columns);
  const long long m0 = (long long)(block / columns % rows) * tile_m;
  const long long n0 = (long long)(block % columns) * tile_n;
  if (batch >= Index(p.batches)) return;
  const A* a = static_cast<const A*>(p.a) + batch_offset(batch, p, p.a_batch);
  const B* b = static_cast<const B*>(p.b) + batch_offset(batch, p, p.b_batch);
  const int tid = int(threadIdx.x), tm = tid / 16 * each, tn = tid % 16 * each;
  T sum[each][each] = {};
  for (long long k0 = 0; k0 < p.k; k0 += tile_k) {
#pragma unroll
    for (int i = tid; i < tile_m * tile_k; i += threads) {
      const int r = RLX_A_ALONG_K ? i / tile_k : i % tile_m;
      const int c = RLX_A_ALONG_K ? i % tile_k : i / tile_m;
      T x = T(0);
      if (m0 + r < p.m && k0 + c < p.k) {
        x = rlx::convert<T>(rlx::load(a + ((m0 + r) * p.a_row + (k0 + c) * p.a_column)));
#if RLX_A_ZERO
        x = rlx::scalar::sub(x, rlx::convert<T>(rlx::load(
                                    static_cast<const RLX_A_ZERO_TYPE*>(p.a_zero) +
                                    (m0 + r) * p.a_zero_row)));
#endif
      }
      as[c][r] = x;
    }
#pragma unroll
    for (int i = tid; i < tile_n * tile_k; i += threads) {
      const int r = RLX_B_ALONG_N ? i / tile_n : i % tile_k;
      const int c = RLX_B_ALONG_N ? i % tile_n : i / tile_k;
      T x = T(0);
      if (k0 + r < p.k && n0 + c < p.n) {
        x = rlx::convert<T>(rlx::load(b + ((k0 + r) * p.b_row + (n0 + c) * p.b_column)));
#if RLX_B_ZERO
        x = rlx::scalar::sub(x, rlx::convert<T>(rlx::load(
                                    static_cast<const RLX_B_ZERO_TYPE*>(p.b_zero) +
                                    (n0 + c) * p.b_zero_column)));
#endif
      }
      bs[r][c] = x;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < tile_k; ++k) {
      T x[each], y[each];
#pragma unroll
      for (int i = 0; i < each; ++i) x[i] = as[k][tm + i];
#pragma unroll
      for (int i = 0; i < each; ++i) y[i] = bs[k][tn + i];
#pragma unroll
      for (int i = 0; i < each; ++i) {
#pragma unroll
        for (int j = 0; j < each; ++j) sum[i][j] = times_add(x[i], y[j], sum[i][j]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < each; ++i) {
    const long long m = m0 + tm + i;
    if (m >= p.m) continue;
#if RLX_SCALED
#pragma unroll
    for (int j = 0; j < each; ++j) sum[i][j] = sum[i][j] * T(p.alpha);
#endif
    const Index row = (batch * Index(p.m) + Index(m)) * Index(p.n);
    constexpr int vector = RLX_VECTOR;
#pragma unroll
    for (int j = 0; j < each; j += vector) {
      const long long n = n0 + tn + j;
      if (n < p.n) rlx::out::run<vector>(p.out, rlx::out::Index(row + Index(n)), &sum[i][j]);
    }
  }
}
