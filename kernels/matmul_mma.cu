// Products on tensor cores: half types and TF32, dense or transposed operands, any size, a Region
// behind it. One kernel has a tile for many rows, for some and for few, and joins the parts of a
// split k, so that a size never compiles.
#include "generated/out.h"
#include "kernels/include/split_product.h"
#include "kernels/include/tile_mma.h"

namespace {

using S = RLX_T;
using Index = unsigned long long;
using rlx::params::TileProduct;
constexpr bool a_along_k = RLX_A_ALONG_K, b_along_k = RLX_B_ALONG_K;
constexpr int vector = RLX_VECTOR;

struct Place {  // of a block: its first row and column, its product and part of k
  long long m, n;
  rlx::ProductPart part;
};

// Neighbouring blocks share columns of B, and 8 rows of tiles the columns of A.
RLX_FN Place place_of(const TileProduct& p) {
  constexpr long long high = 8;
  const long long rows = (p.m + p.tile_m - 1) / p.tile_m;
  const long long columns = (p.n + p.tile_n - 1) / p.tile_n;
  const Index block = rlx::block_rank();
  const long long tile = (long long)(block % Index(rows * columns));
  const long long first = tile / (high * columns) * high, within = tile - first * columns;
  const long long group = rows - first < high ? rows - first : high;
  return {(first + within % group) * p.tile_m, within / group * p.tile_n,
          rlx::ProductPart(p, block / Index(rows * columns))};
}

template <int index>
RLX_FN void multiply(const TileProduct& p, const rlx::OperandPlace<S>& a_place,
                     const rlx::OperandPlace<S>& b_place, unsigned char* shared) {
  constexpr auto form = rlx::params::tile_forms[index];
  constexpr int threads = rlx::params::tile_threads;
  using Tile = rlx::TileMma<S, form.m, form.n, form.warp_m, form.warp_n, form.slice, form.stages,
                            a_along_k, b_along_k>;
  rlx::SliceCopy<typename Tile::A, S, a_along_k, threads, form.aligned> a(a_place, p.a_run);
  rlx::SliceCopy<typename Tile::B, S, b_along_k, threads, form.aligned> b(b_place, p.b_run);
  static_assert(Tile::threads == threads);
  Tile tile;
  const long long depth = a_place.depth;
  tile.run(shared, depth > 0 ? int((depth + Tile::k - 1) / Tile::k) : 0,
           [&](typename Tile::Slice& to, int) {
             a.copy(to.a);
             b.copy(to.b);
           });
  tile.results(shared);
}

RLX_FN void write(const TileProduct& p, const Place& at, const float* results) {
  const int runs = p.tile_n / vector, pitch = p.tile_n + rlx::params::result_pad;
#pragma unroll 1
  for (int i = int(threadIdx.x); i < p.tile_m * runs; i += rlx::params::tile_threads) {
    const int r = i / runs, c = i % runs * vector;
    if (at.m + r >= p.m || at.n + c >= p.n) continue;
    float x[vector];
    rlx::load_run<vector>(x, results + r * pitch + c);
    rlx::write_product<vector>(p, at.part, at.m + r, at.n + c, x);
  }
}

RLX_FN void product(const TileProduct& p, unsigned char* shared) {
  const Place at = place_of(p);
  const rlx::ProductPart& part = at.part;
  if (part.batch >= Index(p.batches)) return;
  const S* a = static_cast<const S*>(p.a) + rlx::batch_offset(part.batch, p, p.a_batch);
  const S* b = static_cast<const S*>(p.b) + rlx::batch_offset(part.batch, p, p.b_batch);
  const long long depth = part.end - part.k;
  const rlx::OperandPlace<S> a_place = {a + (at.m * p.a_row + part.k * p.a_column),
                                        a_along_k ? p.a_row : p.a_column, p.m - at.m, depth};
  const rlx::OperandPlace<S> b_place = {b + (at.n * p.b_column + part.k * p.b_row),
                                        b_along_k ? p.b_column : p.b_row, p.n - at.n, depth};
  static_assert(rlx::params::tile_form_count == 4);
  if (p.form == 0) multiply<0>(p, a_place, b_place, shared);
  else if (p.form == 1) multiply<1>(p, a_place, b_place, shared);
  else if (p.form == 2) multiply<2>(p, a_place, b_place, shared);
  else multiply<3>(p, a_place, b_place, shared);
  write(p, at, reinterpret_cast<const float*>(shared));
}

}  // namespace

extern "C" __global__ void __launch_bounds__(128, 2) matmul_mma(const TileProduct p) {
  RLX_DYNAMIC_SHARED(shared);
  if (p.joins) rlx::join_parts<vector>(p);
  else product(p, shared);
}
