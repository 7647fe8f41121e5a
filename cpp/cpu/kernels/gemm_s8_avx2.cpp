// Inner kernels of 8-bit products for AVX2.
#include <immintrin.h>

#include <utility>

#include "cpu/kernels/gemm_s8_tile.h"

namespace rlx::cpu {
namespace {

struct Avx2 {
  static constexpr int lanes = 8;
  using Vec = __m256i;
  using Wide = __m256i;
  [[gnu::always_inline]] static Wide widen(const int8_t* b) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b)));
  }
  [[gnu::always_inline]] static Wide pair(const int16_t* a) {
    int32_t both;
    std::memcpy(&both, a, sizeof(both));
    return _mm256_set1_epi32(both);
  }
  [[gnu::always_inline]] static Vec dot(Vec sum, Wide a, Wide b) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
  }
};

// Sums of one row of the tile, and the steps that go to them. Two products of bytes are added
// while they have 16 bits: gemm_s8_bytes.h says why they cannot saturate.
template <int rows, int panels>
struct Sums {
  static constexpr int count = 2 * panels;
  __m256i sum[rows][count] = {};

  [[gnu::always_inline]] static __m256i four(const uint8_t* a) {
    int32_t bytes;
    std::memcpy(&bytes, a, sizeof(bytes));
    return _mm256_set1_epi32(bytes);
  }
  // Vectors [first, end) of the tile; vector v of a step lies at b + v / 2 * panel.
  template <int first, int end>
  [[gnu::always_inline]] void add(const uint8_t* a, int64_t a_ld, const int8_t* b, int64_t panel) {
    const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const __m256i low = four(a + r * a_ld), high = four(a + r * a_ld + 4);
#pragma GCC unroll 8
      for (int v = first; v < end; ++v) {
        const auto* at = reinterpret_cast<const __m256i*>(b + v / 2 * panel) + v % 2;
        const __m256i pairs = _mm256_add_epi16(_mm256_maddubs_epi16(low, _mm256_loadu_si256(at)),
                                               _mm256_maddubs_epi16(high,
                                                                    _mm256_loadu_si256(at + 2)));
        sum[r][v] = _mm256_add_epi32(sum[r][v], _mm256_madd_epi16(pairs, ones));
      }
    }
  }
};

constexpr int64_t step_bytes = 128;

template <int rows, int panels>
void bytes_tile(const S8BytesBlock& block, const uint8_t* a, const int8_t* b, int32_t* c,
                int64_t cols) {
  Sums<rows, panels> sums;
  for (int64_t s = 0; s < block.steps; ++s) {
    sums.template add<0, 2 * panels>(a + 8 * s, block.a_ld, b + s * step_bytes, block.b_panel);
  }
  const auto add_large = [&]<int p>(std::integral_constant<int, p>) {
    const int8_t* panel = b + p * block.b_panel;
    const auto* list = reinterpret_cast<const int32_t*>(panel + block.list_at);
    for (int32_t i = 0; i < list[0]; ++i) {
      // The vectors of this panel lie behind those of the others, so the panel is given as 0.
      const int8_t* step = panel + (block.steps + i) * step_bytes;
      sums.template add<2 * p, 2 * p + 2>(a + list[1 + i], block.a_ld, step, 0);
    }
  };
  [&]<int... p>(std::integer_sequence<int, p...>) {
    (add_large(std::integral_constant<int, p>{}), ...);
  }(std::make_integer_sequence<int, panels>{});
  constexpr int64_t width = 16 * panels;
  int32_t part[rows][width];
  std::memcpy(part, sums.sum, sizeof(part));
  for (int r = 0; r < rows; ++r, c += block.ldc) {
    if (cols >= width) std::memcpy(c, part[r], sizeof(part[r]));
    else std::memcpy(c, part[r], size_t(cols) * sizeof(int32_t));
  }
}

template <int rows>
void bytes_tile_of_height(const S8BytesBlock& block, int64_t row, int64_t count, const int8_t* b,
                          int64_t col) {
  if constexpr (rows > 1) {
    if (count < rows) return bytes_tile_of_height<rows - 1>(block, row, count, b, col);
  }
  bytes_tile<rows, 1>(block, block.a + row * block.a_ld, b, block.c + row * block.ldc + col,
                      block.cols - col);
}

constexpr int bytes_rows = 6;

void multiply_bytes(const S8BytesBlock& block) {
  const int8_t* b = block.b;
  int64_t col = 0;
  if (block.rows == 1) {  // several panels at once keep the multipliers busy
    for (; block.cols - col > 48; col += 64, b += 4 * block.b_panel) {
      bytes_tile<1, 4>(block, block.a, b, block.c + col, block.cols - col);
    }
  }
  for (; col < block.cols; col += 16, b += block.b_panel) {
    for (int64_t row = 0; row < block.rows; row += bytes_rows) {
      const int64_t left = block.rows - row;
      bytes_tile_of_height<bytes_rows>(block, row, left < bytes_rows ? left : bytes_rows, b, col);
    }
  }
}

constexpr S8Kernels with_bytes(S8Kernels kernels) {
  kernels.multiply_bytes = multiply_bytes;
  return kernels;
}

}  // namespace

const S8Kernels s8_kernels_avx2 = with_bytes(s8::kernels<Avx2, bytes_rows, 2>());

}  // namespace rlx::cpu
