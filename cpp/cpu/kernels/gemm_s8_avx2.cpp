// Inner kernels of 8-bit products for AVX2.
#include <immintrin.h>

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

}  // namespace

const S8Kernels s8_kernels_avx2 = s8::kernels<Avx2, 6, 2>();

}  // namespace rlx::cpu
