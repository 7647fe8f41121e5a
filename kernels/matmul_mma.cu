// Products on tensor cores: half types and TF32, dense or transposed operands, any size, a Region
// behind it; or a part of k whose sums matmul_join.cu adds.
#if !RLX_SPLIT
#include "generated/out.h"
#endif
#include "kernels/include/tile_mma.h"
#include "kernels/params/tile_product.h"

namespace {

using S = RLX_T;
using Index = unsigned long long;
using rlx::params::TileProduct;
constexpr bool a_along_k = RLX_A_ALONG_K, b_along_k = RLX_B_ALONG_K;
using Tile = rlx::TileMma<S, RLX_TILE_M, RLX_TILE_N, RLX_WARP_M, RLX_WARP_N, RLX_SLICE, RLX_STAGES,
                          a_along_k, b_along_k>;

struct Place {  // of a block
  long long m, n, k, end;  // where it begins, and where its part of k ends
  Index batch, split;
};

// Neighbouring blocks share columns of B, and 8 rows of tiles the columns of A.
RLX_FN Place place_of(const TileProduct& p) {
  constexpr long long high = 8;
  const long long rows = (p.m + RLX_TILE_M - 1) / RLX_TILE_M;
  const long long columns = (p.n + RLX_TILE_N - 1) / RLX_TILE_N;
  Index rest = rlx::block_rank();
  const Index tile = rest % Index(rows * columns);
  rest /= Index(rows * columns);
  const long long first = (long long)(tile) / (high * columns) * high;
  const long long group = rows - first < high ? rows - first : high;
  const long long within = (long long)(tile) - first * columns;
  Place at;
  at.m = (first + within % group) * RLX_TILE_M;
  at.n = within / group * RLX_TILE_N;
  at.split = rest % Index(p.splits);
  at.batch = rest / Index(p.splits);
  at.k = (long long)(at.split) * p.k_part;
  at.end = at.k + p.k_part < p.k ? at.k + p.k_part : p.k;
  return at;
}

RLX_FN void load(const TileProduct& p, const Place& at, const S* a, const S* b, int slice,
                 Tile::Slice& to) {
  const long long k0 = at.k + (long long)(slice) * Tile::k;
  rlx::copy_lines<Tile::a_lines, Tile::a_width, Tile::a_pitch, RLX_A_CHUNK, Tile::threads>(
      to.a, [&](int line, int column, const S*& from) {
        const long long m = at.m + (a_along_k ? line : column);
        const long long k = k0 + (a_along_k ? column : line);
        from = a + (a_along_k ? m * p.a_row + k : k * p.a_column + m);
        return m < p.m && k < at.end;
      });
  rlx::copy_lines<Tile::b_lines, Tile::b_width, Tile::b_pitch, RLX_B_CHUNK, Tile::threads>(
      to.b, [&](int line, int column, const S*& from) {
        const long long n = at.n + (b_along_k ? line : column);
        const long long k = k0 + (b_along_k ? column : line);
        from = b + (b_along_k ? n * p.b_column + k : k * p.b_row + n);
        return n < p.n && k < at.end;
      });
}

RLX_FN void write(const TileProduct& p, const Place& at, const float* results) {
  constexpr int vector = RLX_VECTOR, runs = RLX_TILE_N / vector;
  const Index batch = RLX_SPLIT ? at.split * Index(p.batches) + at.batch : at.batch;
  for (int i = int(threadIdx.x); i < RLX_TILE_M * runs; i += Tile::threads) {
    const int r = i / runs, c = i % runs * vector;
    const long long m = at.m + r, n = at.n + c;
    if (m >= p.m || n >= p.n) continue;
    float x[vector];
    rlx::load_run<vector>(x, results + r * Tile::out_pitch + c);
    const Index place = (batch * Index(p.m) + Index(m)) * Index(p.n) + Index(n);
#if RLX_SPLIT
    rlx::store_run<vector>(p.partial + place, x);
#else
#pragma unroll
    for (int j = 0; j < vector; ++j) x[j] *= p.alpha;
    rlx::out::run<vector>(p.out, rlx::out::Index(place), x);
#endif
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(Tile::threads) matmul_mma(const TileProduct p) {
  RLX_DYNAMIC_SHARED(shared);
  const Place at = place_of(p);
  if (at.batch >= Index(p.batches)) return;
  const S* a = static_cast<const S*>(p.a) + rlx::batch_offset(at.batch, p, p.a_batch);
  const S* b = static_cast<const S*>(p.b) + rlx::batch_offset(at.batch, p, p.b_batch);
  Tile tile;
  const int slices = at.k < at.end ? int((at.end - at.k + Tile::k - 1) / Tile::k) : 0;
  tile.run(shared, slices,
           [&](Tile::Slice& to, int slice) { load(p, at, a, b, slice, to); });
  write(p, at, tile.results(shared));
}
