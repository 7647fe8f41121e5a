// Products of up to 16 rows at the speed of memory: 4 rows read B once, in its own type, the next
// ones from the cache; sums are float. One kernel serves one row and 4, and joins the parts of a
// split k, so that a number of rows never compiles.
#include "generated/out.h"
#include "kernels/include/split_product.h"
#include "kernels/include/warp.h"

namespace {

using A = RLX_A;
using B = RLX_B;
using Index = unsigned long long;
using rlx::params::TileProduct;
constexpr int most_rows = 4, chunk = RLX_CHUNK, warps = 8, threads = warps * 32;

struct Place {  // of a block: its rows, columns, product and part of k
  int m;
  long long n;
  rlx::ProductPart part;

  __device__ bool has(const TileProduct& p, int row) const { return m + row < p.m; }
};

// Blocks of the same columns are neighbours.
RLX_FN Place place_of(const TileProduct& p, int columns) {
  const Index high = Index(p.m + most_rows - 1) / most_rows;
  const Index wide = Index(p.n + columns - 1) / Index(columns), block = rlx::block_rank();
  return {int(block % high) * most_rows, (long long)(block / high % wide) * columns,
          rlx::ProductPart(p, block / (high * wide))};
}

RLX_FN float a_value(const TileProduct& p, const Place& at, const A* a, int m, long long k) {
  return at.has(p, m) ? rlx::load(a + (m * p.a_row + k * p.a_column)) : 0.0f;
}

RLX_FN const A* a_of(const TileProduct& p, const Place& at) {
  return static_cast<const A*>(p.a) + rlx::batch_offset(at.part.batch, p, p.a_batch) +
         at.m * p.a_row;
}

// Sums of a block's columns for all rows, one after the other in shared memory.
template <int rows, int columns>
RLX_FN void write(const TileProduct& p, const Place& at, const float* sums) {
  for (int i = int(threadIdx.x); i < rows * columns; i += threads) {
    const int m = i / columns;
    const long long n = at.n + i % columns;
    if (!at.has(p, m) || n >= p.n) continue;
    float x[1] = {sums[i]};
    rlx::write_product<1>(p, at.part, at.m + m, n, x);
  }
}

#if RLX_B_ALONG_K
// A column of B is a row of memory: a warp walks along 4 of them.
constexpr int each = 4, columns = warps * each, shared_floats = most_rows * columns;

template <int rows> RLX_FN void multiply(const TileProduct& p, float* sums) {
  const Place at = place_of(p, columns);
  if (at.part.batch >= Index(p.batches)) return;
  const A* a = a_of(p, at);
  const B* b = static_cast<const B*>(p.b) + rlx::batch_offset(at.part.batch, p, p.b_batch);
  const long long n0 = at.n + rlx::warp_id() * each;
  float sum[rows][each] = {};
#pragma unroll 1
  for (long long k = at.part.k + rlx::lane_id() * chunk; k < at.part.end; k += 32 * chunk) {
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
      if (at.has(p, m)) rlx::load_run<chunk>(raw, a + (m * p.a_row + k));
#pragma unroll
      for (int i = 0; i < chunk; ++i) x[i] = rlx::Element<A>::load(raw[i]);
#else
#pragma unroll
      for (int i = 0; i < chunk; ++i) x[i] = a_value(p, at, a, m, k + i);
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
  write<rows, columns>(p, at, sums);
}
#else
// Neighbouring columns are neighbours in memory: some lanes side by side take 128 bytes of a row
// of B, all others of the block other rows.
constexpr int wanted = 128 / (chunk * int(sizeof(B))), lanes = wanted < 32 ? wanted : 32;
constexpr int columns = lanes * chunk, ways = threads / lanes, ahead = 4;
constexpr int shared_floats = warps * most_rows * columns;

template <int rows> RLX_FN void multiply(const TileProduct& p, float* parts) {
  constexpr int size = rows * columns;  // of a warp's sums
  const Place at = place_of(p, columns);
  if (at.part.batch >= Index(p.batches)) return;
  const A* a = a_of(p, at);
  const int column = rlx::lane_id() % lanes * chunk;
  const bool inside = at.n + column < p.n;
  const B* b =
      static_cast<const B*>(p.b) + rlx::batch_offset(at.part.batch, p, p.b_batch) + at.n + column;
  float sum[rows][chunk] = {};
#pragma unroll 1
  for (long long first = at.part.k + int(threadIdx.x) / lanes; first < at.part.end;
       first += ways * ahead) {
    B w[ahead][chunk] = {};
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      const long long k = first + i * ways;
      if (inside && k < at.part.end) rlx::load_run<chunk>(w[i], b + k * p.b_row);
    }
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      const long long k = first + i * ways;
      if (k >= at.part.end) continue;
#pragma unroll
      for (int m = 0; m < rows; ++m) {
        const float x = a_value(p, at, a, m, k);
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
      if (rlx::lane_id() < lanes) parts[rlx::warp_id() * size + m * columns + column + j] = all;
    }
  }
  __syncthreads();
  for (int i = int(threadIdx.x); i < size; i += threads) {
    float all = parts[i];
#pragma unroll
    for (int w = 1; w < warps; ++w) all += parts[w * size + i];
    parts[i] = all;
  }
  __syncthreads();
  write<rows, columns>(p, at, parts);
}
#endif

}  // namespace

extern "C" __global__ void __launch_bounds__(threads) gemv(const TileProduct p) {
  __shared__ float shared[shared_floats];
  if (p.joins) rlx::join_parts<RLX_VECTOR>(p);
  else if (p.m == 1) multiply<1>(p, shared);
  else multiply<most_rows>(p, shared);
}
