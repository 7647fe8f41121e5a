// Quantised weights as floats, and the part of products by them that no instruction set decides.
#include "cpu/kernels/quantised.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/cpuid.h"
#include "core/divide.h"
#include "core/error.h"
#include "core/half.h"
#include "core/packed.h"
#include "cpu/kernels/quantised_kernels.h"
#include "cpu/team.h"
#include "kernels/include/small_floats.h"

namespace rlx::cpu {
namespace {

// The value of a code of at most a byte.
float value_of(DType type, uint8_t code) {
  switch (type) {
    case DType::int8: return float(int8_t(code));
    case DType::int4: return float((code ^ 8) - 8);
    case DType::int2: return float((code ^ 2) - 2);
    case DType::float8e4m3fn: return scalar::decode<scalar::Float8E4M3FN>(code);
    case DType::float8e4m3fnuz: return scalar::decode<scalar::Float8E4M3FNUZ>(code);
    case DType::float8e5m2: return scalar::decode<scalar::Float8E5M2>(code);
    case DType::float8e5m2fnuz: return scalar::decode<scalar::Float8E5M2FNUZ>(code);
    case DType::float4e2m1: return scalar::decode<scalar::Float4E2M1>(code);
    case DType::float8e8m0: return scalar::decode_e8m0(code);
    default: return float(code);
  }
}

float element(DType type, const void* from, int64_t i) {
  switch (type) {
    case DType::float32: return static_cast<const float*>(from)[i];
    case DType::float64: return float(static_cast<const double*>(from)[i]);
    case DType::float16: return static_cast<const Float16*>(from)[i];
    case DType::bfloat16: return static_cast<const Bfloat16*>(from)[i];
    default: return value_of(type, static_cast<const uint8_t*>(from)[i]);
  }
}

const QuantisedTable& table() {
#if defined(__x86_64__)
  switch (cpu_isa()) {
    case Isa::avx512: return quantised_table_avx512;
    case Isa::avx2: return quantised_table_avx2;
    default: break;
  }
#endif
  return quantised_table_portable;
}

int64_t chunk_of(const Quantised& b) { return table().lanes * (8 / bits_of(b.type)); }

struct Arranged {  // the activations as the inner kernels read them
  int64_t lda = 0, blocks = 0, block = 0;
};

Arranged arranged(const Quantised& b) {
  const int64_t block = std::max<int64_t>(std::min(b.block_k, b.k), 1);
  return {ceil_div(b.k, chunk_of(b)) * chunk_of(b), ceil_div(b.k, block), block};
}

// One row: within a chunk the values of part 0 of all bytes, then those of part 1, ...
void arrange(const QuantisedGemv& call, const Arranged& to, int64_t row, float* a, float* sums) {
  const int64_t k = call.b.k, parts = 8 / bits_of(call.b.type), lanes = table().lanes;
  std::memset(a, 0, size_t(to.lda) * sizeof(float));
  std::fill_n(sums, to.blocks, 0.0f);
  for (int64_t i = 0; i < k; ++i) {
    const float x = element(call.a_type, call.a, row * k + i);
    const int64_t chunk = i / (lanes * parts), in = i % (lanes * parts);
    a[chunk * lanes * parts + in % parts * lanes + in / parts] = x;
    sums[i / to.block] += x;
  }
}

}  // namespace

float Quantised::scale(int64_t at) const { return element(scale_type, scales, at); }
float Quantised::zero(int64_t at) const { return element(zero_type, zeros, one_zero ? 0 : at); }

Quantised Quantised::matrix(int64_t i, int64_t code_bytes, int64_t scale_count) const {
  Quantised q = *this;
  q.codes += i * code_bytes;
  q.scales = static_cast<const std::byte*>(scales) + i * scale_count * int64_t(size_of(scale_type));
  if (zeros && !one_zero) {
    q.zeros = static_cast<const std::byte*>(zeros) + i * scale_count * int64_t(size_of(zero_type));
  }
  return q;
}

void dequantise(const Quantised& q, int64_t begin, int64_t end, float* to, int64_t ld) {
  const int bits = bits_of(q.type), parts = 8 / bits;
  std::array<float, 256> values;  // by code
  for (int code = 0; code < 1 << bits; ++code) {
    values[size_t(code)] = value_of(q.type, uint8_t(code));
  }
  for (int64_t row = begin; row < end; ++row, to += ld) {
    const auto* codes = reinterpret_cast<const uint8_t*>(q.codes + row * q.row_bytes);
    for (int64_t first = 0, block = 0; first < q.k; first += q.block_k, ++block) {
      const int64_t place = q.place(row, block);
      const float scale = q.scale(place), zero = q.zeros ? q.zero(place) : 0.0f;
      for (int64_t i = first; i < std::min(first + q.block_k, q.k); ++i) {
        const int code = codes[i / parts] >> (i % parts * bits) & ((1 << bits) - 1);
        to[i] = (values[size_t(code)] - zero) * scale;
      }
    }
  }
}

bool gemv_takes(const Quantised& b) {
  switch (b.type) {
    case DType::int8: case DType::uint8: case DType::int4: case DType::uint4: case DType::int2:
    case DType::uint2: break;
    case DType::float4e2m1:
      if (b.zeros || b.zero_type != DType::none) return false;
      break;
    default: return false;
  }
  return b.block_k >= b.k || b.block_k % chunk_of(b) == 0;
}

size_t gemv_workspace(const Quantised& b, int64_t rows) {
  const Arranged a = arranged(b);
  return size_t(rows * (a.lda + a.blocks)) * sizeof(float);
}

void gemv(const QuantisedGemv& call) {
  const Arranged to = arranged(call.b);
  auto* a = static_cast<float*>(call.workspace);
  float* sums = a + call.rows * to.lda;
  for (int64_t r = 0; r < call.rows; ++r) {
    arrange(call, to, r, a + r * to.lda, sums + r * to.blocks);
  }
  const GemvBlock block{call.b,  call.rows, to.blocks, a,         to.lda,
                        sums,    call.y,    call.ldy,  call.alpha};
  const QuantisedTable& kernels = table();
  const auto run = call.b.type == DType::float4e2m1 ? kernels.e2m1
                   : bits_of(call.b.type) == 8      ? kernels.bits8
                   : bits_of(call.b.type) == 4      ? kernels.bits4
                                                    : kernels.bits2;
  constexpr int64_t share = 1 << 16;  // bytes of codes that are worth another thread
  const int64_t grain = std::max<int64_t>(1, share / std::max<int64_t>(call.b.row_bytes, 1));
  parallel_for(call.threads, call.b.n, grain,
               [&](int64_t begin, int64_t end) { run(block, begin, end); });
}

}  // namespace rlx::cpu
