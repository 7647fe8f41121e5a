// The transposition of a matrix in memory.
//
// GCC vector extensions: the including file's instruction set decides the code, so that it is
// static and each of those files keeps its own copy.
#pragma once

#include <cstdint>
#include <cstring>

namespace rlx {

// to[j, i] = from[i, j] for i < rows, j < cols; rows lie from_ld and to_ld elements apart, at any
// address. Blocks of 4 x 4 in registers where T has four bytes.
template <class T>
static void transpose(const T* from, int64_t from_ld, int64_t rows, int64_t cols, T* to,
                      int64_t to_ld) {
  int64_t i = 0;
  if constexpr (sizeof(T) == 4) {
    typedef T Quad __attribute__((vector_size(16)));
    const auto load = [](const T* at) {
      Quad x;
      std::memcpy(&x, at, sizeof x);
      return x;
    };
    const auto store = [](T* at, Quad x) { std::memcpy(at, &x, sizeof x); };
    for (; i + 4 <= rows; i += 4) {
      const T* source = from + i * from_ld;
      int64_t j = 0;
      for (; j + 4 <= cols; j += 4) {
        const Quad a = load(source + j), b = load(source + from_ld + j);
        const Quad c = load(source + 2 * from_ld + j), d = load(source + 3 * from_ld + j);
        const Quad ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
        const Quad ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
        const Quad cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
        const Quad cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
        T* target = to + j * to_ld + i;
        store(target, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
        store(target + to_ld, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
        store(target + 2 * to_ld, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
        store(target + 3 * to_ld, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
      }
      for (; j < cols; ++j) {
        for (int64_t r = 0; r < 4; ++r) {
          std::memcpy(to + j * to_ld + i + r, source + r * from_ld + j, sizeof(T));
        }
      }
    }
  }
  for (; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      std::memcpy(to + j * to_ld + i, from + i * from_ld + j, sizeof(T));
    }
  }
}

}  // namespace rlx
