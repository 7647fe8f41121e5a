// Transposes matrices block by block, so that both sides stay within a few cache lines.
#include "cpu/kernels/layout.h"

#include <algorithm>

#include "cpu/team.h"

namespace rlx::cpu {
namespace {

constexpr int64_t block = 16;

template <class T>
void transpose_block(const T* from, int64_t from_ld, T* to, int64_t to_ld) {
  T tile[block][block];
  for (int64_t i = 0; i < block; ++i) {
    for (int64_t j = 0; j < block; ++j) tile[j][i] = from[i * from_ld + j];
  }
  for (int64_t j = 0; j < block; ++j) std::copy(tile[j], tile[j] + block, to + j * to_ld);
}

template <class T>
void transpose(int64_t batch, int64_t rows, int64_t cols, const T* from, T* to, int threads) {
  const int64_t strips = (cols + block - 1) / block;
  parallel_for(threads, batch * strips, std::max<int64_t>(1, 4096 / (rows * block)),
               [&](int64_t begin, int64_t end) {
    for (int64_t strip = begin; strip < end; ++strip) {
      const int64_t matrix = strip / strips * rows * cols, first = strip % strips * block;
      const int64_t last = std::min(first + block, cols);
      const T* source = from + matrix;
      T* target = to + matrix;
      int64_t i = 0;
      for (; last - first == block && i + block <= rows; i += block) {
        transpose_block(source + i * cols + first, cols, target + first * rows + i, rows);
      }
      for (; i < rows; ++i) {
        for (int64_t j = first; j < last; ++j) target[j * rows + i] = source[i * cols + j];
      }
    }
  });
}

}  // namespace

void transpose_each(int64_t batch, int64_t rows, int64_t cols, size_t item, const void* from,
                    void* to, int threads) {
  const auto as = [&](auto tag) {
    using T = decltype(tag);
    transpose(batch, rows, cols, static_cast<const T*>(from), static_cast<T*>(to), threads);
  };
  switch (item) {
    case 1: return as(uint8_t{});
    case 2: return as(uint16_t{});
    case 4: return as(uint32_t{});
    default: return as(uint64_t{});
  }
}

}  // namespace rlx::cpu
