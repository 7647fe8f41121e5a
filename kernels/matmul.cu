// The product that always works: any element type, layout and size, in tiles of shared memory.
#include "generated/out.h"
#include "kernels/include/index.h"
#include "kernels/include/tile_product.h"
#include "kernels/params/matmul.h"

namespace {

using A = RLX_A;
using B = RLX_B;
using T = RLX_ACCUMULATE;  // products are added in it; integers wrap
using Index = unsigned long long;
using Tile = rlx::TileProduct<T>;
using rlx::params::MatMul;

RLX_FN T a_value(const MatMul& p, const A* a, long long m, long long k) {
  if (m >= p.m || k >= p.k) return T(0);
  T x = rlx::convert<T>(rlx::load(a + (m * p.a_row + k * p.a_column)));
#if RLX_A_ZERO
  const auto* zero = static_cast<const RLX_A_ZERO_TYPE*>(p.a_zero) + m * p.a_zero_row;
  x = rlx::scalar::sub(x, rlx::convert<T>(rlx::load(zero)));
#endif
  return x;
}

RLX_FN T b_value(const MatMul& p, const B* b, long long k, long long n) {
  if (k >= p.k || n >= p.n) return T(0);
  T x = rlx::convert<T>(rlx::load(b + (k * p.b_row + n * p.b_column)));
#if RLX_B_ZERO
  const auto* zero = static_cast<const RLX_B_ZERO_TYPE*>(p.b_zero) + n * p.b_zero_column;
  x = rlx::scalar::sub(x, rlx::convert<T>(rlx::load(zero)));
#endif
  return x;
}

// Neighbouring threads read along the axis that is contiguous in memory.
RLX_FN void load_slices(const MatMul& p, const A* a, const B* b, long long m0, long long n0,
                        long long k0, Tile::Slices& slices) {
#pragma unroll
  for (int i = int(threadIdx.x); i < Tile::m * Tile::k; i += Tile::threads) {
    const int r = RLX_A_ALONG_K ? i / Tile::k : i % Tile::m;
    const int c = RLX_A_ALONG_K ? i % Tile::k : i / Tile::m;
    slices.a[c][r] = a_value(p, a, m0 + r, k0 + c);
  }
#pragma unroll
  for (int i = int(threadIdx.x); i < Tile::n * Tile::k; i += Tile::threads) {
    const int r = RLX_B_ALONG_N ? i / Tile::n : i % Tile::k;
    const int c = RLX_B_ALONG_N ? i % Tile::n : i / Tile::k;
    slices.b[r][c] = b_value(p, b, k0 + r, n0 + c);
  }
}

RLX_FN void write(const MatMul& p, Tile& tile, Index batch, long long m0, long long n0) {
  constexpr int vector = RLX_VECTOR;
#pragma unroll
  for (int i = 0; i < Tile::each; ++i) {
    const long long m = m0 + tile.row + i;
    if (m >= p.m) continue;
#if RLX_SCALED
#pragma unroll
    for (int j = 0; j < Tile::each; ++j) tile.sum[i][j] = tile.sum[i][j] * T(p.alpha);
#endif
    const Index row = (batch * Index(p.m) + Index(m)) * Index(p.n);
#pragma unroll
    for (int j = 0; j < Tile::each; j += vector) {
      const long long n = n0 + tile.column + j;
      if (n < p.n) rlx::out::run<vector>(p.out, rlx::out::Index(row + Index(n)), &tile.sum[i][j]);
    }
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256) matmul(const MatMul p) {
  __shared__ Tile::Slices slices;
  const Index columns = Index(p.n + Tile::n - 1) / Tile::n;
  const Index rows = Index(p.m + Tile::m - 1) / Tile::m;
  const Index block = rlx::block_rank(), batch = block / (rows * columns);
  const long long m0 = (long long)(block / columns % rows) * Tile::m;
  const long long n0 = (long long)(block % columns) * Tile::n;
  if (batch >= Index(p.batches)) return;
  const A* a = static_cast<const A*>(p.a) + rlx::batch_offset(batch, p, p.a_batch);
  const B* b = static_cast<const B*>(p.b) + rlx::batch_offset(batch, p, p.b_batch);
  Tile tile(int(threadIdx.x));
  for (long long k0 = 0; k0 < p.k; k0 += Tile::k) {
    load_slices(p, a, b, m0, n0, k0, slices);
    __syncthreads();
    tile.add(slices);
    __syncthreads();
  }
  write(p, tile, batch, m0, n0);
}
