// Vectors of `bytes` bytes for the inner kernels of matrix products.
//
// GCC vector extensions: the including file's instruction set decides the code. Everything built
// on them is static, so that each of those files keeps its own copy.
#pragma once

#include <cstdint>

#include "cpu/kernels/gemm_kernels.h"

namespace rlx::cpu::tile {

template <class T, int bytes>
struct VectorOf {
  typedef T type __attribute__((vector_size(bytes)));
  typedef T unaligned __attribute__((vector_size(bytes), aligned(alignof(T)), may_alias));
};

template <class T, int bytes>
using Vec = typename VectorOf<T, bytes>::type;

template <class T, int bytes>
[[gnu::always_inline]] static inline Vec<T, bytes> load(const T* from) {
  return *reinterpret_cast<const typename VectorOf<T, bytes>::unaligned*>(from);
}

template <class T, int bytes>
[[gnu::always_inline]] static inline void store(T* to, Vec<T, bytes> value) {
  *reinterpret_cast<typename VectorOf<T, bytes>::unaligned*>(to) = value;
}

// See GemmKernels; blocks of 4 x 4 in registers where T has four bytes.
template <class T>
static void transpose(const T* from, int64_t from_ld, int64_t rows, int64_t cols, T* to,
                      int64_t to_ld) {
  int64_t i = 0;
  if constexpr (sizeof(T) == 4) {
    for (; i + 4 <= rows; i += 4) {
      const T* source = from + i * from_ld;
      int64_t j = 0;
      for (; j + 4 <= cols; j += 4) {
        const auto a = load<T, 16>(source + j), b = load<T, 16>(source + from_ld + j);
        const auto c = load<T, 16>(source + 2 * from_ld + j);
        const auto d = load<T, 16>(source + 3 * from_ld + j);
        const auto ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
        const auto ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
        const auto cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
        const auto cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
        T* target = to + j * to_ld + i;
        store<T, 16>(target, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
        store<T, 16>(target + to_ld, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
        store<T, 16>(target + 2 * to_ld, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
        store<T, 16>(target + 3 * to_ld, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
      }
      for (; j < cols; ++j) {
        for (int64_t r = 0; r < 4; ++r) to[j * to_ld + i + r] = source[r * from_ld + j];
      }
    }
  }
  for (; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) to[j * to_ld + i] = from[i * from_ld + j];
  }
}

}  // namespace rlx::cpu::tile
