// A tile of a product by the tensor cores of a block: slices of both operands in shared memory,
// several of them copied ahead. tile_copy.h fills them.
#pragma once

#include "kernels/include/async_copy.h"
#include "kernels/include/mma.h"
#include "kernels/include/tile_copy.h"

namespace rlx {

// M x N results, warp_m x warp_n of them by each warp; slices of `bytes` along k. An operand lies
// along k in shared memory, or along m and n: as neighbours lie in global memory.
template <class S, int M, int N, int warp_m, int warp_n, int bytes, int stages, bool a_along_k,
          bool b_along_k>
struct TileMma {
  using A = SliceShape<S, bytes, M, a_along_k>;
  using B = SliceShape<S, bytes, N, b_along_k>;
  static constexpr bool single = sizeof(S) == 4;  // float, as TF32
  static constexpr int k = A::k, step = 32 / int(sizeof(S)), steps = k / step;
  static constexpr int piece = A::piece, a_pitch = A::pitch, b_pitch = B::pitch;
  static constexpr int warps_n = N / warp_n, threads = M / warp_m * warps_n * 32;
  // Columns of B along n are read 4 at a time: then product j of 4 has each fourth of 32 columns.
  static constexpr bool fourths = single && !b_along_k && warp_n % 32 == 0;

  static constexpr int out_pitch = N + params::result_pad;

  struct Slice {
    alignas(16) S a[A::size];
    alignas(16) S b[B::size];
  };
  struct Fragments {
    MmaA a[warp_m / 16];
    MmaB b[warp_n / 8];
  };

  MmaC sums[warp_m / 16][warp_n / 8];
  int row, column;  // of the warp's part

  __device__ TileMma()
      : row(warp_id() / warps_n * warp_m), column(warp_id() % warps_n * warp_n) {}

  // Adds slices 0 .. count - 1; load(slice, i) begins to copy slice i. What tensor cores multiply
  // next is read while they work.
  template <class Load> __device__ void run(unsigned char* shared, int count, const Load& load) {
    Slice* slices = reinterpret_cast<Slice*>(shared);
#pragma unroll 1
    for (int i = 0; i < stages - 1; ++i) {
      if (i < count) load(slices[i], i);
      async_commit();
    }
    if (count == 0) return;
    Fragments next[2];
    arrive();
    read(next[0], slices[0], 0);
    int at = 0, free = stages - 1;  // of the slices: the one that is multiplied, one to be filled
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      const Slice& slice = slices[at];
      const int following = at + 1 == stages ? 0 : at + 1;
#pragma unroll
      for (int s = 0; s < steps; ++s) {
        if (s + 1 < steps) {
          read(next[(s + 1) % 2], slice, (s + 1) * step);
          if (s == 0 && i + stages - 1 < count) load(slices[free], i + stages - 1);
          if (s == 0) async_commit();
        } else {
          arrive();  // the following slice is here, and nobody reads this one any more
          if (i + 1 < count) read(next[0], slices[following], 0);
        }
        multiply(next[s % 2]);
      }
      free = at;
      at = following;
    }
  }

  // The results as rows of out_pitch floats, for all threads.
  __device__ const float* results(unsigned char* shared) const {
    float* out = reinterpret_cast<float*>(shared);
    const int g = lane_id() / 4, t = lane_id() % 4;
    async_wait<0>();
    __syncthreads();  // the slices are read
#pragma unroll
    for (int i = 0; i < warp_m / 16; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float* line = out + (row + i * 16 + h * 8 + g) * out_pitch + column;
        if constexpr (fourths) {
#pragma unroll
          for (int j = 0; j < warp_n / 8; j += 4) {
#pragma unroll
            for (int e = 2 * h; e < 2 * h + 2; ++e) {
              const float run[4] = {sums[i][j].value[e], sums[i][j + 1].value[e],
                                    sums[i][j + 2].value[e], sums[i][j + 3].value[e]};
              store_run<4>(line + j * 8 + (2 * t + e % 2) * 4, run);
            }
          }
        } else {
#pragma unroll
          for (int j = 0; j < warp_n / 8; ++j) {
            const float pair[2] = {sums[i][j].value[2 * h], sums[i][j].value[2 * h + 1]};
            store_run<2>(line + j * 8 + 2 * t, pair);
          }
        }
      }
    }
    __syncthreads();
    return out;
  }

 private:
  static __device__ void arrive() {
    async_wait<stages - 2>();
    __syncthreads();
  }

  __device__ void read(Fragments& to, const Slice& slice, int at) const {
#pragma unroll
    for (int i = 0; i < warp_m / 16; ++i) to.a[i] = load_a(slice.a, row + i * 16, at);
    if constexpr (fourths) {
#pragma unroll
      for (int j = 0; j < warp_n / 8; j += 4) {
        load_fourths(&to.b[j], slice.b + at * b_pitch + column + j * 8);
      }
    } else {
#pragma unroll
      for (int j = 0; j < warp_n / 16; ++j) {
        const MmaA two = load_b(slice.b, column + j * 16, at);
        to.b[2 * j] = {two.word[0], two.word[1]};
        to.b[2 * j + 1] = {two.word[2], two.word[3]};
      }
    }
  }

  __device__ void multiply(const Fragments& f) {
#pragma unroll
    for (int i = 0; i < warp_m / 16; ++i) {
#pragma unroll
      for (int j = 0; j < warp_n / 8; ++j) mma_add(sums[i][j], f.a[i], f.b[j], S{});
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
  // Four right operands from 32 floats on: column 4 g + j is column g of operand j.
  static __device__ void load_fourths(MmaB* to, const S* b) {
    const int g = lane_id() / 4, t = lane_id() % 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float x[4];
      load_run<4>(x, reinterpret_cast<const float*>(b) + (t + 4 * half) * b_pitch + 4 * g);
#pragma unroll
      for (int j = 0; j < 4; ++j) to[j].word[half] = tf32_word(x[j]);
    }
  }
};

}  // namespace rlx
