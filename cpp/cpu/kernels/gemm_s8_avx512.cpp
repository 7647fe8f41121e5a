// Inner kernels of 8-bit products for AVX-512, with and without its dot product instructions.
#include <immintrin.h>

#include "cpu/kernels/gemm_s8_tile.h"

namespace rlx::cpu {
namespace {

struct Avx512 {
  static constexpr int lanes = 16;
  using Vec = __m512i;
  using Wide = __m512i;
  [[gnu::always_inline]] static Wide widen(const int8_t* b) {
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(b)));
  }
  [[gnu::always_inline]] static Wide pair(const int16_t* a) {
    int32_t both;
    std::memcpy(&both, a, sizeof(both));
    return _mm512_set1_epi32(both);
  }
  [[gnu::always_inline]] static Vec dot(Vec sum, Wide a, Wide b) {
    return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
  }
};

// The file is compiled without AVX512-VNNI, so the instruction is named to the assembler.
struct Vnni : Avx512 {
  [[gnu::always_inline]] static Vec dot(Vec sum, Wide a, Wide b) {
    __asm__("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
  }
};

}  // namespace

const S8Kernels s8_kernels_avx512 = s8::kernels<Avx512, 12, 2>();
const S8Kernels s8_kernels_vnni = s8::kernels<Vnni, 12, 2>();

}  // namespace rlx::cpu
