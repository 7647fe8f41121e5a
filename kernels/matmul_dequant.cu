// Products on tensor cores by weights that are dequantised on their way into shared memory, or by
// the weights of each row's group: rows lie sorted by group, and a block finds its tile from where
// groups begin, on the device.
#include "generated/out.h"
#include "kernels/include/dequant.h"
#include "kernels/include/index.h"
#include "kernels/include/mma.h"
#include "kernels/include/warp.h"

namespace {

using rlx::params::MatMulDequant;
using S = RLX_T;  // of A, and what weights are rounded to; float is rounded to TF32
using Index = unsigned long long;
constexpr int threads = 128, bm = RLX_BM, bn = 64, bk = 32;
constexpr int words = bk * int(sizeof(S)) / 4;  // of a row in shared memory; 4 more: other banks
constexpr int a_each = bm * bk / threads, b_each = bn * bk / threads;  // values of a thread
constexpr int a_run = a_each < RLX_A_RUN ? a_each : RLX_A_RUN, b_run = RLX_RUN;
// Warps: 2 x 2 of 32 x 32, or 4 beside each other of 16 x 16.
constexpr int m_tiles = bm == 16 ? 1 : 2, n_tiles = bm == 16 ? 2 : 4;

struct Shared {
  unsigned a[bm][words + 4], b[bn][words + 4];
};

struct Tile {
  long long first, rows, matrix;  // of the sorted rows, those inside, and their matrix
};

// The tile of block row `index`; rows is 0 behind the last.
RLX_FN Tile find_tile(const MatMulDequant& p, long long index) {
#if RLX_GROUPS
  long long before = 0;
  for (long long base = 0; base < p.group_count; base += rlx::warp_size) {
    const long long g = base + rlx::lane_id();
    const int begin = g < p.group_count ? p.starts[g] : 0;
    const int end = g < p.group_count ? p.starts[g + 1] : 0;
    const int mine = (end - begin + bm - 1) / bm;
    int through = mine;  // tiles of the groups up to this one
#pragma unroll
    for (int by = 1; by < rlx::warp_size; by *= 2) {
      const int lower = rlx::shuffle_up(through, by);
      if (rlx::lane_id() >= by) through += lower;
    }
    const unsigned found = __ballot_sync(rlx::all_lanes, before + through > index);
    if (found) {
      const int lane = __ffs(int(found)) - 1;
      const long long tile = index - before - rlx::shuffle_from(through - mine, lane);
      const long long first = rlx::shuffle_from(begin, lane) + tile * bm;
      return {first, rlx::shuffle_from(end, lane) - first, base + lane};
    }
    before += rlx::shuffle_from(through, rlx::warp_size - 1);
  }
  return {0, 0, 0};
#else
  return {index * bm, p.m - index * bm, 0};
#endif
}

RLX_FN long long place_of(const MatMulDequant& p, const Tile& tile, int row) {
  if (row >= tile.rows) return -1;
#if RLX_GROUPS
  return p.places[tile.first + row];
#else
  return tile.first + row;
#endif
}

// Values beside each other as words of shared memory.
template <int n> RLX_FN void put(unsigned* to, const float (&x)[n]) {
  if constexpr (sizeof(S) == 4) {
#pragma unroll
    for (int i = 0; i < n; ++i) to[i] = rlx::tf32_word(x[i]);
  } else {
#pragma unroll
    for (int i = 0; i < n; i += 2) to[i / 2] = rlx::pack_pair<S>(x[i], x[i + 1]);
  }
}

struct Loader {  // this thread's part of both slices, in registers until it can be stored
  static constexpr int a_lanes = bk / a_each, b_lanes = bk / b_each;
  const S* a;
  long long matrix, n;
  float x[a_each], w[b_each];

  __device__ Loader(const MatMulDequant& p, const Tile& tile, long long n0) {
    const long long place = place_of(p, tile, int(threadIdx.x) / a_lanes);
    a = place < 0 ? nullptr : static_cast<const S*>(p.a) + place * p.a_row;
    matrix = tile.matrix;
    n = n0 + int(threadIdx.x) / b_lanes;
  }

  __device__ void load(const MatMulDequant& p, long long k0) {
    const long long ka = k0 + int(threadIdx.x) % a_lanes * a_each;
#pragma unroll
    for (int i = 0; i < a_each; i += a_run) {
      S raw[a_run] = {};
      if (a && ka + i + a_run <= p.b.k) {
        rlx::load_run<a_run>(raw, a + ka + i);
      } else if (a) {
#pragma unroll
        for (int j = 0; j < a_run; ++j) {
          if (ka + i + j < p.b.k) raw[j] = a[ka + i + j];
        }
      }
#pragma unroll
      for (int j = 0; j < a_run; ++j) x[i + j] = rlx::Element<S>::load(raw[j]);
    }
    const long long kb = k0 + int(threadIdx.x) % b_lanes * b_each;
#pragma unroll
    for (int i = 0; i < b_each; i += b_run) {
      float part[b_run] = {};
      if (n < p.b.n && kb + i < p.b.k) {
        rlx::load_weights<float, RLX_B, RLX_SCALE, RLX_ZERO, RLX_QUANTISED, RLX_ZEROS, RLX_EVEN>(
            p.b, matrix, n, kb + i, part);
      }
#pragma unroll
      for (int j = 0; j < b_run; ++j) w[i + j] = part[j];
    }
  }

  __device__ void store(Shared& shared) const {
    constexpr int a_words = a_each * words / bk, b_words = b_each * words / bk;
    const int t = int(threadIdx.x);
    put(&shared.a[t / a_lanes][t % a_lanes * a_words], x);
    put(&shared.b[t / b_lanes][t % b_lanes * b_words], w);
  }
};

struct Sums {
  rlx::MmaC c[m_tiles][n_tiles];
  int row, column;  // of the warp

  __device__ Sums() {
    row = bm == 16 ? 0 : rlx::warp_id() / 2 * 32;
    column = bm == 16 ? rlx::warp_id() * 16 : rlx::warp_id() % 2 * 32;
  }

  __device__ void add(const Shared& shared) {
    const int g = rlx::lane_id() / 4, t = rlx::lane_id() % 4;
#pragma unroll
    for (int k = 0; k < words; k += 8) {
      rlx::MmaA a[m_tiles];
      rlx::MmaB b[n_tiles];
#pragma unroll
      for (int i = 0; i < m_tiles; ++i) {
        const unsigned* upper = &shared.a[row + i * 16 + g][k + t];
        const unsigned* lower = &shared.a[row + i * 16 + g + 8][k + t];
        a[i].word[0] = upper[0], a[i].word[1] = lower[0];
        a[i].word[2] = upper[4], a[i].word[3] = lower[4];
      }
#pragma unroll
      for (int j = 0; j < n_tiles; ++j) {
        const unsigned* from = &shared.b[column + j * 8 + g][k + t];
        b[j].word[0] = from[0], b[j].word[1] = from[4];
      }
#pragma unroll
      for (int i = 0; i < m_tiles; ++i) {
#pragma unroll
        for (int j = 0; j < n_tiles; ++j) rlx::mma_add(c[i][j], a[i], b[j], S{});
      }
    }
  }

  __device__ void write(const MatMulDequant& p, const Tile& tile, long long n0) {
    constexpr int vector = RLX_VECTOR;
    const int g = rlx::lane_id() / 4, t = rlx::lane_id() % 4;
#pragma unroll
    for (int i = 0; i < m_tiles * 2; ++i) {
      const long long place = place_of(p, tile, row + i / 2 * 16 + i % 2 * 8 + g);
      if (place < 0) continue;
#pragma unroll
      for (int j = 0; j < n_tiles; ++j) {
        float y[2];
        y[0] = c[i / 2][j].value[i % 2 * 2] * p.alpha;
        y[1] = c[i / 2][j].value[i % 2 * 2 + 1] * p.alpha;
        const long long n = n0 + column + j * 8 + 2 * t;
#pragma unroll
        for (int v = 0; v < 2; v += vector) {
          if (n + v < p.b.n) {
            rlx::out::run<vector>(p.out, rlx::out::Index(place * p.b.n + n + v), &y[v]);
          }
        }
      }
    }
  }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(128) matmul_dequant(const MatMulDequant p) {
  __shared__ Shared shared;
  // Neighbouring blocks have the same columns: weights come from memory once.
  const Index down = Index(p.m + bm - 1) / bm + (RLX_GROUPS ? Index(p.group_count) : 0);
  const Index block = rlx::block_rank();
  const long long n0 = (long long)(block / down) * bn;
  if (n0 >= p.b.n) return;
  const Tile tile = find_tile(p, (long long)(block % down));
  if (tile.rows <= 0) return;
  Loader loader(p, tile, n0);
  Sums sums;
  if (p.b.k > 0) loader.load(p, 0);
  for (long long k = 0; k < p.b.k; k += bk) {
    loader.store(shared);
    __syncthreads();
    if (k + bk < p.b.k) loader.load(p, k + bk);
    sums.add(shared);
    __syncthreads();
  }
  sums.write(p, tile, n0);
}
