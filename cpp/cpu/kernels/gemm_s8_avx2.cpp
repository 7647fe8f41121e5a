// Inner kernels of 8-bit products for AVX2.
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "cpu/kernels/gemm_s8_panels.h"
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
static_assert(vectors == S8Panel::vectors && Avx2::lanes == S8Panel::lanes);

[[gnu::always_inline]] inline __m256i products(const uint8_t* a, const int8_t* b) {
  int32_t bytes;
  std::memcpy(&bytes, a, sizeof(bytes));
  return _mm256_maddubs_epi16(_mm256_set1_epi32(bytes),
                              _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b)));
}

// One step of a row and a vector, in runs of four rows of B so many bytes apart. Their products
// are added while they have 16 bits: gemm_s8_bytes.h says why they cannot saturate.
template <int runs, int run_bytes>
[[gnu::always_inline]] inline __m256i step(const uint8_t* a, const int8_t* b) {
  __m256i pairs = products(a, b);
#pragma GCC unroll 4
  for (int i = 1; i < runs; ++i) {
    pairs = _mm256_add_epi16(pairs, products(a + 4 * i, b + i * run_bytes));
  }
  return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

// Adds the further steps of vector v of a panel to its sums, rows of which lie `ld` apart. Apart
// from the loop below, which needs all registers.
template <int rows, int runs>
[[gnu::noinline]] void add_extra(const S8BytesBlock& block, const uint8_t* a, const S8Panel& panel,
                                 int v, int32_t* part, int64_t ld) {
  constexpr int64_t extra_bytes = 4 * runs * Avx2::lanes;
  const int8_t* first = block.rest + panel.extra_at;
  const int64_t all = (panel.extra[0] + panel.extra[1]) * extra_bytes;
  const auto* starts = reinterpret_cast<const int32_t*>(first + all);
  const int32_t before = v ? panel.extra[0] : 0;
  __m256i sum[rows] = {};
  for (int32_t i = before; i < before + panel.extra[v]; ++i) {
    const uint8_t* from = a + starts[i];
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const uint8_t* row = from + r * block.a_ld;
      const __m256i more = step<runs, 4 * Avx2::lanes>(row, first + i * extra_bytes);
      sum[r] = _mm256_add_epi32(sum[r], more);
    }
  }
  for (int r = 0; r < rows; ++r) {
    auto* at = reinterpret_cast<__m256i*>(part + r * ld + v * Avx2::lanes);
    _mm256_storeu_si256(at, _mm256_add_epi32(_mm256_loadu_si256(at), sum[r]));
  }
}

template <int rows, int panels, int runs>
void bytes_tile(const S8BytesBlock& block, const uint8_t* a, int32_t* c, int64_t col) {
  constexpr int count = vectors * panels;
  constexpr int64_t depth = 4 * runs, step_bytes = depth * width;
  const int64_t panel_bytes = block.steps * step_bytes, first = col / width;
  const int8_t* b = block.b + first * panel_bytes;
  __m256i sum[rows][count] = {};
  for (int64_t s = 0; s < block.steps; ++s, b += step_bytes) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < count; ++v) {
        const int8_t* at = b + v / vectors * panel_bytes + v % vectors * int64_t{sizeof(__m256i)};
        const __m256i more = step<runs, 4 * width>(a + r * block.a_ld + depth * s, at);
        sum[r][v] = _mm256_add_epi32(sum[r][v], more);
      }
    }
  }
  int32_t part[rows][width * panels];
  std::memcpy(part, sum, sizeof(part));
  for (int v = 0; v < count; ++v) {
    const S8Panel& panel = block.panels[first + v / vectors];
    if (panel.extra[v % vectors] == 0) continue;
    add_extra<rows, runs>(block, a, panel, v % vectors, part[0] + v / vectors * width,
                          width * panels);
  }
  const size_t kept = size_t(std::min<int64_t>(block.cols - col, width * panels)) * sizeof(int32_t);
  for (int r = 0; r < rows; ++r, c += block.ldc) std::memcpy(c, part[r], kept);
}

// Columns from `col` on in tiles of so many panels, while more than all but one are left of each.
template <int rows, int panels, int runs>
int64_t bytes_columns(const S8BytesBlock& block, int64_t col) {
  for (; block.cols - col > (panels - 1) * width; col += panels * width) {
    int64_t row = 0;
    const auto tile = [&]<int height>(std::integral_constant<int, height>) {
      for (; block.rows - row >= height; row += height) {
        bytes_tile<height, panels, runs>(block, block.a + row * block.a_ld,
                                         block.c + row * block.ldc + col, col);
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
  static_assert(std::size(s8_depths) == 2);
  return block.depth == s8_depths[0] ? multiply_bytes_of<s8_depths[0] / 4>(block)
                                     : multiply_bytes_of<s8_depths[1] / 4>(block);
}

constexpr S8Kernels with_bytes(S8Kernels kernels) {
  kernels.multiply_bytes = multiply_bytes;
  return kernels;
}

}  // namespace

const S8Kernels s8_kernels_avx2 = with_bytes(s8::kernels<Avx2, pair_rows, vectors>());

}  // namespace rlx::cpu
