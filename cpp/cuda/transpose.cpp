// The transposition, tile by tile.
#include "cuda/transpose.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace rlx::cuda {
namespace {

// A row of a tile is a cache line. Rows of weights often lie a multiple of 4 KiB apart, where a
// cache keeps a dozen: each line of either matrix is touched once, the exchange is between copies.
constexpr int tile = 16;
constexpr size_t item = 4;
using Quad = uint32_t __attribute__((vector_size(16)));

Quad load(const uint32_t* from) {
  Quad x;
  std::memcpy(&x, from, sizeof x);
  return x;
}

void exchange(const uint32_t (&in)[tile][tile], uint32_t (&out)[tile][tile]) {
  for (int r = 0; r < tile; r += 4) {
    for (int c = 0; c < tile; c += 4) {
      const Quad q0 = load(&in[r][c]), q1 = load(&in[r + 1][c]);
      const Quad q2 = load(&in[r + 2][c]), q3 = load(&in[r + 3][c]);
      const Quad low01 = __builtin_shufflevector(q0, q1, 0, 4, 1, 5);
      const Quad high01 = __builtin_shufflevector(q0, q1, 2, 6, 3, 7);
      const Quad low23 = __builtin_shufflevector(q2, q3, 0, 4, 1, 5);
      const Quad high23 = __builtin_shufflevector(q2, q3, 2, 6, 3, 7);
      const Quad columns[] = {__builtin_shufflevector(low01, low23, 0, 1, 4, 5),
                              __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
                              __builtin_shufflevector(high01, high23, 0, 1, 4, 5),
                              __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
      for (int k = 0; k < 4; ++k) std::memcpy(&out[c + k][r], &columns[k], sizeof(Quad));
    }
  }
}

}  // namespace

void transpose_columns(const void* from, int64_t rows, int64_t cols, int64_t first, int64_t count,
                       void* to) {
  const auto* source = static_cast<const std::byte*>(from) + size_t(first) * item;
  auto* target = static_cast<std::byte*>(to);
  alignas(64) uint32_t in[tile][tile] = {}, out[tile][tile];
  for (int64_t r0 = 0; r0 < rows; r0 += tile) {
    const int64_t height = std::min<int64_t>(tile, rows - r0);
    for (int64_t c0 = 0; c0 < count; c0 += tile) {
      const int64_t width = std::min<int64_t>(tile, count - c0);
      const auto take = [&](size_t bytes) {
        for (int64_t r = 0; r < height; ++r) {
          const auto* at = source + size_t((r0 + r) * cols + c0) * item;
          // The next tile of these columns: too far away for the hardware to foresee.
          __builtin_prefetch(at + size_t(tile * cols) * item);
          std::memcpy(in[r], at, bytes);
        }
      };
      const auto give = [&](size_t bytes) {
        for (int64_t c = 0; c < width; ++c) {
          std::memcpy(target + size_t((c0 + c) * rows + r0) * item, out[c], bytes);
        }
      };
      width == tile ? take(tile * item) : take(size_t(width) * item);  // known lengths are moves
      exchange(in, out);
      height == tile ? give(tile * item) : give(size_t(height) * item);
    }
  }
}

}  // namespace rlx::cuda
