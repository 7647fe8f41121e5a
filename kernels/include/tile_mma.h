// A tile of a product by the tensor cores of a block: slices of both operands in shared memory,
// several of them copied ahead. Who uses it says where the operands' elements are.
#pragma once

#include "kernels/include/async_copy.h"
#include "kernels/include/index.h"
#include "kernels/include/mma.h"

namespace rlx {

// M x N results, warp_m x warp_n of them by each warp; slices of `bytes` along k. An operand lies
// along k in shared memory, or along m and n: as neighbours lie in global memory.
template <class S, int M, int N, int warp_m, int warp_n, int bytes, int stages, bool a_along_k,
          bool b_along_k>
struct TileMma {
  static constexpr bool single = sizeof(S) == 4;  // float, as TF32
  static constexpr int k = bytes / int(sizeof(S)), step = 32 / int(sizeof(S));
  static constexpr int piece = 16 / int(sizeof(S));  // elements of a matrix's row
  static constexpr int warps_n = N / warp_n, threads = M / warp_m * warps_n * 32;
  // Rows end in 16 bytes more, or 32 of floats, so that a warp reads from different banks.
  static constexpr int a_lines = a_along_k ? M : k, a_width = a_along_k ? k : M;
  static constexpr int b_lines = b_along_k ? N : k, b_width = b_along_k ? k : N;
  static constexpr int a_pitch = a_width + (single && !a_along_k ? 8 : piece);
  static constexpr int b_pitch = b_width + (single && !b_along_k ? 8 : piece);
  static constexpr int out_pitch = N + 8;

  struct Slice {
    alignas(16) S a[a_lines * a_pitch];
    alignas(16) S b[b_lines * b_pitch];
  };
  static constexpr int slices_size = stages * int(sizeof(Slice));
  static constexpr int out_size = M * out_pitch * 4;
  static constexpr int shared_size = slices_size > out_size ? slices_size : out_size;

  MmaC sums[warp_m / 16][warp_n / 8];
  int row, column;  // of the warp's part

  __device__ TileMma()
      : row(warp_id() / warps_n * warp_m), column(warp_id() % warps_n * warp_n) {}

  // Adds slices 0 .. count - 1; load(slice, i) begins to copy slice i.
  template <class Load> __device__ void run(unsigned char* shared, int count, const Load& load) {
    Slice* slices = reinterpret_cast<Slice*>(shared);
#pragma unroll
    for (int i = 0; i < stages - 1; ++i) {
      if (i < count) load(slices[i], i);
      async_commit();
    }
    for (int i = 0; i < count; ++i) {
      async_wait<stages - 2>();
      __syncthreads();  // slice i is here, and nobody reads slice i - 1 any more
      const int next = i + stages - 1;
      if (next < count) load(slices[next % stages], next);
      async_commit();
      add(slices[i % stages]);
    }
    async_wait<0>();
  }

  // The results as rows of out_pitch floats, for all threads.
  __device__ const float* results(unsigned char* shared) const {
    float* out = reinterpret_cast<float*>(shared);
    const int g = lane_id() / 4, t = lane_id() % 4;
    __syncthreads();  // the slices are read
#pragma unroll
    for (int i = 0; i < warp_m / 16; ++i) {
#pragma unroll
      for (int j = 0; j < warp_n / 8; ++j) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const float pair[2] = {sums[i][j].value[2 * h], sums[i][j].value[2 * h + 1]};
          store_run<2>(out + (row + i * 16 + h * 8 + g) * out_pitch + column + j * 8 + 2 * t,
                       pair);
        }
      }
    }
    __syncthreads();
    return out;
  }

 private:
  __device__ void add(const Slice& slice) {
#pragma unroll
    for (int at = 0; at < k; at += step) {
      MmaA a[warp_m / 16];
      MmaB b[warp_n / 8];
#pragma unroll
      for (int i = 0; i < warp_m / 16; ++i) a[i] = load_a(slice.a, row + i * 16, at);
#pragma unroll
      for (int j = 0; j < warp_n / 16; ++j) {
        const MmaA two = load_b(slice.b, column + j * 16, at);
        b[2 * j] = {two.word[0], two.word[1]};
        b[2 * j + 1] = {two.word[2], two.word[3]};
      }
#pragma unroll
      for (int i = 0; i < warp_m / 16; ++i) {
#pragma unroll
        for (int j = 0; j < warp_n / 8; ++j) mma_add(sums[i][j], a[i], b[j], S{});
      }
    }
  }

  static __device__ MmaA rounded(MmaA m) {
    if constexpr (single) {
#pragma unroll
      for (int e = 0; e < 4; ++e) m.word[e] = tf32_word(__builtin_bit_cast(float, m.word[e]));
    }
    return m;
  }
  static __device__ unsigned word_of(const S* x) { return *reinterpret_cast<const unsigned*>(x); }

  // 16 rows of the left operand from `first` on, `step` columns from `at` on.
  static __device__ MmaA load_a(const S* a, int first, int at) {
    const int lane = lane_id();
    if constexpr (a_along_k) {
      return rounded(load_matrices<false>(a + (first + lane % 16) * a_pitch + at +
                                          lane / 16 * piece));
    } else if constexpr (!single) {
      return load_matrices<true>(a + (at + lane / 16 * 8 + lane % 8) * a_pitch + first +
                                 lane / 8 % 2 * 8);
    } else {
      const S* from = a + (at + lane % 4) * a_pitch + first + lane / 4;
      return rounded({{word_of(from), word_of(from + 8), word_of(from + 4 * a_pitch),
                       word_of(from + 4 * a_pitch + 8)}});
    }
  }
  // Two right operands: columns from `first` and `first` + 8 on.
  static __device__ MmaA load_b(const S* b, int first, int at) {
    const int lane = lane_id();
    if constexpr (b_along_k) {
      return rounded(load_matrices<false>(b + (first + lane / 16 * 8 + lane % 8) * b_pitch + at +
                                          lane / 8 % 2 * piece));
    } else if constexpr (!single) {
      return load_matrices<true>(b + (at + lane / 8 % 2 * 8 + lane % 8) * b_pitch + first +
                                 lane / 16 * 8);
    } else {
      const S* from = b + (at + lane % 4) * b_pitch + first + lane / 4;
      return rounded({{word_of(from), word_of(from + 4 * b_pitch), word_of(from + 8),
                       word_of(from + 4 * b_pitch + 8)}});
    }
  }
};

// Fills `lines` rows of `width` elements, `chunk` at a time: find(line, column, from) says whether
// there are any, and where.
template <int lines, int width, int pitch, int chunk, int threads, class S, class Find>
RLX_FN void copy_lines(S* to, const Find& find) {
  constexpr int runs = width / chunk, all = lines * runs;
#pragma unroll 16
  for (int first = 0; first < all; first += threads) {
    const int i = first + int(threadIdx.x);
    if (all % threads != 0 && i >= all) break;
    const int line = i / runs, column = i % runs * chunk;
    const S* from = nullptr;
    const bool inside = find(line, column, from);
    copy_elements<chunk>(to + line * pitch + column, from, inside);
  }
}

}  // namespace rlx
