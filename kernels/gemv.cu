// Products of up to 16 rows at the speed of memory: B is read once, in its own type, by all rows;
// sums are float. With a part of k a block leaves its sums to matmul_join.cu.
#if !RLX_SPLIT
#include "generated/out.h"
#endif
#include "kernels/include/vector.h"
#include "kernels/include/warp.h"
#include "kernels/params/tile_product.h"

namespace {

using A = RLX_A;
using B = RLX_B;
using Index = unsigned long long;
using rlx::params::TileProduct;
constexpr int rows = RLX_ROWS, chunk = RLX_CHUNK, warps = 8, threads = warps * 32;

struct Place {  // of a block
  long long n, k, end;
  Index batch, split;
};

template <int columns> RLX_FN Place place_of(const TileProduct& p) {
  const Index blocks = Index(p.n + columns - 1) / columns;
  Index rest = rlx::block_rank();
  Place at;
  at.n = (long long)(rest % blocks) * columns;
  rest /= blocks;
  at.split = rest % Index(p.splits);
  at.batch = rest / Index(p.splits);
  at.k = (long long)(at.split) * p.k_part;
  at.end = at.k + p.k_part < p.k ? at.k + p.k_part : p.k;
  return at;
}

RLX_FN float a_value(const TileProduct& p, const A* a, int m, long long k) {
  return m < p.m ? rlx::load(a + (m * p.a_row + k * p.a_column)) : 0.0f;
}

// Sums of a block's columns for all rows, one after the other in shared memory.
template <int columns> RLX_FN void write(const TileProduct& p, const Place& at, const float* sums) {
  const Index batch = RLX_SPLIT ? at.split * Index(p.batches) + at.batch : at.batch;
  for (int i = int(threadIdx.x); i < rows * columns; i += threads) {
    const int m = i / columns;
    const long long n = at.n + i % columns;
    if (m >= p.m || n >= p.n) continue;
    const Index place = (batch * Index(p.m) + Index(m)) * Index(p.n) + Index(n);
#if RLX_SPLIT
    p.partial[place] = sums[i];
#else
    const float x[1] = {sums[i] * p.alpha};
    rlx::out::run<1>(p.out, rlx::out::Index(place), x);
#endif
  }
}

}  // namespace

#if RLX_B_ALONG_K
// A column of B is a row of memory: a warp walks along 4 of them.
extern "C" __global__ void __launch_bounds__(threads) gemv(const TileProduct p) {
  constexpr int each = 4, columns = warps * each;
  __shared__ float sums[rows * columns];
  const Place at = place_of<columns>(p);
  if (at.batch >= Index(p.batches)) return;
  const A* a = static_cast<const A*>(p.a) + rlx::batch_offset(at.batch, p, p.a_batch);
  const B* b = static_cast<const B*>(p.b) + rlx::batch_offset(at.batch, p, p.b_batch);
  const long long n0 = at.n + rlx::warp_id() * each;
  float sum[rows][each] = {};
#pragma unroll 2
  for (long long k = at.k + rlx::lane_id() * chunk; k < at.end; k += 32 * chunk) {
    B w[each][chunk];
#pragma unroll
    for (int j = 0; j < each; ++j) {
      if (n0 + j < p.n) {
        rlx::load_run<chunk>(w[j], b + ((n0 + j) * p.b_column + k));
      } else {
#pragma unroll
        for (int i = 0; i < chunk; ++i) w[j][i] = B{};
      }
    }
#pragma unroll
    for (int m = 0; m < rows; ++m) {
      float x[chunk];
#if RLX_A_DENSE
      A raw[chunk] = {};
      if (m < p.m) rlx::load_run<chunk>(raw, a + (m * p.a_row + k));
#pragma unroll
      for (int i = 0; i < chunk; ++i) x[i] = rlx::Element<A>::load(raw[i]);
#else
#pragma unroll
      for (int i = 0; i < chunk; ++i) x[i] = a_value(p, a, m, k + i);
#endif
#pragma unroll
      for (int j = 0; j < each; ++j) {
#pragma unroll
        for (int i = 0; i < chunk; ++i) sum[m][j] += x[i] * rlx::Element<B>::load(w[j][i]);
      }
    }
  }
#pragma unroll
  for (int m = 0; m < rows; ++m) {
#pragma unroll
    for (int j = 0; j < each; ++j) {
      const float all = rlx::warp_reduce(sum[m][j], rlx::add_values<float>);
      if (rlx::lane_id() == 0) sums[m * columns + rlx::warp_id() * each + j] = all;
    }
  }
  __syncthreads();
  write<columns>(p, at, sums);
}
#else
// Neighbouring columns are neighbours in memory: some lanes side by side take 128 bytes of a row
// of B, all others of the block other rows.
extern "C" __global__ void __launch_bounds__(threads) gemv(const TileProduct p) {
  constexpr int wanted = 128 / (chunk * int(sizeof(B))), lanes = wanted < 32 ? wanted : 32;
  constexpr int columns = lanes * chunk, ways = threads / lanes, ahead = 4;
  __shared__ float parts[warps][rows * columns];
  const Place at = place_of<columns>(p);
  if (at.batch >= Index(p.batches)) return;
  const A* a = static_cast<const A*>(p.a) + rlx::batch_offset(at.batch, p, p.a_batch);
  const int column = rlx::lane_id() % lanes * chunk;
  const bool inside = at.n + column < p.n;
  const B* b =
      static_cast<const B*>(p.b) + rlx::batch_offset(at.batch, p, p.b_batch) + at.n + column;
  float sum[rows][chunk] = {};
  for (long long first = at.k + int(threadIdx.x) / lanes; first < at.end; first += ways * ahead) {
    B w[ahead][chunk] = {};
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      const long long k = first + i * ways;
      if (inside && k < at.end) rlx::load_run<chunk>(w[i], b + k * p.b_row);
    }
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      const long long k = first + i * ways;
      if (k >= at.end) continue;
#pragma unroll
      for (int m = 0; m < rows; ++m) {
        const float x = a_value(p, a, m, k);
#pragma unroll
        for (int j = 0; j < chunk; ++j) sum[m][j] += x * rlx::Element<B>::load(w[i][j]);
      }
    }
  }
#pragma unroll
  for (int m = 0; m < rows; ++m) {
#pragma unroll
    for (int j = 0; j < chunk; ++j) {
      float all = sum[m][j];
#pragma unroll
      for (int bits = lanes; bits < 32; bits *= 2) all += rlx::shuffle_xor(all, bits);
      if (rlx::lane_id() < lanes) parts[rlx::warp_id()][m * columns + column + j] = all;
    }
  }
  __syncthreads();
  for (int i = int(threadIdx.x); i < rows * columns; i += threads) {
    float all = parts[0][i];
#pragma unroll
    for (int w = 1; w < warps; ++w) all += parts[w][i];
    parts[0][i] = all;
  }
  __syncthreads();
  write<columns>(p, at, parts[0]);
}
#endif
