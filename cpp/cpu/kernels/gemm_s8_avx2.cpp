// Inner kernels of 8-bit products for AVX2.
#include <immintrin.h>

#include <algorithm>
#include <cstring>
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

// The tile of pairs, and that of bytes: fewer rows of twice as many columns load A less often.
constexpr int pair_rows = 6, bytes_rows = 3, bytes_panels = 2;
constexpr int vectors = 2;  // of a panel's columns
constexpr int width = vectors * Avx2::lanes;

// Sums of a tile, and the steps that go to them. Products of bytes, as many as a step has runs of
// four rows, are added while they have 16 bits: gemm_s8_bytes.h says why they cannot saturate.
template <int rows, int panels, int runs>
struct Sums {
  static constexpr int count = vectors * panels;
  __m256i sum[rows][count] = {};

  [[gnu::always_inline]] static __m256i products(const uint8_t* a, const int8_t* b) {
    int32_t bytes;
    std::memcpy(&bytes, a, sizeof(bytes));
    return _mm256_maddubs_epi16(_mm256_set1_epi32(bytes),
                                _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b)));
  }
  // Vectors [first, end) of the tile; vector v of a step lies at b + v / vectors * panel.
  template <int first, int end>
  [[gnu::always_inline]] void add(const uint8_t* a, int64_t a_ld, const int8_t* b, int64_t panel) {
    const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
      for (int v = first; v < end; ++v) {
        const int8_t* at = b + v / vectors * panel + v % vectors * int64_t{sizeof(__m256i)};
        __m256i pairs = products(a + r * a_ld, at);
#pragma GCC unroll 4
        for (int i = 1; i < runs; ++i) {
          pairs = _mm256_add_epi16(pairs, products(a + r * a_ld + 4 * i, at + i * 4 * width));
        }
        sum[r][v] = _mm256_add_epi32(sum[r][v], _mm256_madd_epi16(pairs, ones));
      }
    }
  }
};

template <int rows, int panels, int runs>
void bytes_tile(const S8BytesBlock& block, const uint8_t* a, const int8_t* b, int32_t* c,
                int64_t cols) {
  constexpr int64_t depth = 4 * runs, step_bytes = depth * width;
  Sums<rows, panels, runs> sums;
  for (int64_t s = 0; s < block.steps; ++s) {
    sums.template add<0, vectors * panels>(a + depth * s, block.a_ld, b + s * step_bytes,
                                           block.b_panel);
  }
  const auto add_large = [&]<int p>(std::integral_constant<int, p>) {
    const int8_t* panel = b + p * block.b_panel;
    const auto* list = reinterpret_cast<const int32_t*>(panel + block.list_at);
    for (int32_t i = 0; i < list[0]; ++i) {
      // The vectors of this panel lie behind those of the others, so the panel is given as 0.
      const int8_t* step = panel + (block.steps + i) * step_bytes;
      sums.template add<vectors * p, vectors * (p + 1)>(a + list[1 + i], block.a_ld, step, 0);
    }
  };
  [&]<int... p>(std::integer_sequence<int, p...>) {
    (add_large(std::integral_constant<int, p>{}), ...);
  }(std::make_integer_sequence<int, panels>{});
  int32_t part[rows][width * panels];
  std::memcpy(part, sums.sum, sizeof(part));
  const size_t kept = size_t(std::min<int64_t>(cols, width * panels)) * sizeof(int32_t);
  for (int r = 0; r < rows; ++r, c += block.ldc) std::memcpy(c, part[r], kept);
}

// Columns from `col` on in tiles of so many panels, while more than all but one are left of each.
template <int rows, int panels, int runs>
int64_t bytes_columns(const S8BytesBlock& block, int64_t col) {
  for (; block.cols - col > (panels - 1) * width; col += panels * width) {
    const int8_t* b = block.b + col / width * block.b_panel;
    int64_t row = 0;
    const auto tile = [&]<int height>(std::integral_constant<int, height>) {
      for (; block.rows - row >= height; row += height) {
        bytes_tile<height, panels, runs>(block, block.a + row * block.a_ld, b,
                                         block.c + row * block.ldc + col, block.cols - col);
      }
    };
    [&]<int... less>(std::integer_sequence<int, less...>) {
      (tile(std::integral_constant<int, rows - less>{}), ...);
    }(std::make_integer_sequence<int, rows>{});
  }
  return col;
}

template <int runs>
void multiply_bytes_of(const S8BytesBlock& block) {
  // One row: several panels at once keep the multipliers busy.
  int64_t col = block.rows == 1 ? bytes_columns<1, 4, runs>(block, 0) : 0;
  col = bytes_columns<bytes_rows, bytes_panels, runs>(block, col);
  bytes_columns<bytes_rows, 1, runs>(block, col);
}

void multiply_bytes(const S8BytesBlock& block) {
  return block.depth == 16 ? multiply_bytes_of<4>(block) : multiply_bytes_of<2>(block);
}

constexpr S8Kernels with_bytes(S8Kernels kernels) {
  kernels.multiply_bytes = multiply_bytes;
  return kernels;
}

}  // namespace

const S8Kernels s8_kernels_avx2 = with_bytes(s8::kernels<Avx2, pair_rows, vectors>());

}  // namespace rlx::cpu
