// Depthwise convolution: packs the weights, shares out the rows, picks the instruction set.
#include "cpu/kernels/conv_depthwise.h"

#include <algorithm>

#include "core/cpuid.h"
#include "core/half.h"
#include "cpu/kernels/conv_depthwise_kernels.h"
#include "cpu/kernels/zero_point.h"
#include "cpu/team.h"

namespace rlx::cpu {
namespace {

const DepthwiseTable& table() {
#if defined(__x86_64__)
  if (cpu_isa() == Isa::avx512) return depthwise_table_avx512;
  if (cpu_isa() == Isa::avx2) return depthwise_table_avx2;
#endif
  return depthwise_table_portable;
}

DepthwiseRows rows_for(DType x, DType y) {
  const bool sums = y == DType::float32;
  switch (x) {
    case DType::float32: return table().f32;
    case DType::float64: return table().f64;
    case DType::int8: return table().i8;
    case DType::uint8: return table().u8;
    case DType::float16: return sums ? table().f16_sums : table().f16;
    case DType::bfloat16: return sums ? table().bf16_sums : table().bf16;
    default: return nullptr;
  }
}

bool is_byte(DType type) { return type == DType::int8 || type == DType::uint8; }

template <class W, class Sum, class Zero>
void pack(const ConvGeometry& g, const W* w, Zero&& zero, Sum* packed) {
  for (int64_t c = 0; c < g.out_channels; ++c) {
    for (int64_t tap = 0; tap < g.taps(); ++tap) {
      packed[tap * g.out_channels + c] = Sum(w[c * g.taps() + tap]) - Sum(zero(c));
    }
  }
}

}  // namespace

bool depthwise_conv_takes(DType x, DType w, DType y) {
  if (is_byte(x)) return is_byte(w) && y == DType::int32;
  if (is_half(x)) return w == x && (y == x || y == DType::float32);
  if (x == DType::float32 && is_half(w)) return y == x;  // packed weights are float32
  return (x == DType::float32 || x == DType::float64) && w == x && y == x;
}

size_t depthwise_packed_bytes(const ConvGeometry& g, DType w_type) {
  const size_t item = is_byte(w_type) || is_half(w_type) ? sizeof(int32_t) : size_of(w_type);
  return size_t(g.taps() * g.out_channels) * item;
}

void depthwise_pack(const ConvGeometry& g, DType w_type, const void* w, DType zero_type,
                    const void* zero, bool zero_per_channel, void* packed) {
  const auto zero_of = [&](int64_t channel) {
    return zero_point(zero_type, zero, zero_per_channel ? channel : 0);
  };
  const auto pack_as = [&](auto tag, auto sum) {
    pack(g, static_cast<const decltype(tag)*>(w), zero_of, static_cast<decltype(sum)*>(packed));
  };
  switch (w_type) {
    case DType::float32: return pack_as(float{}, float{});
    case DType::float64: return pack_as(double{}, double{});
    case DType::float16: return pack_as(Float16{}, float{});
    case DType::bfloat16: return pack_as(Bfloat16{}, float{});
    case DType::int8: return pack_as(int8_t{}, int32_t{});
    default: return pack_as(uint8_t{}, int32_t{});
  }
}

void depthwise_conv(const DepthwiseConv& conv, const void* x, const void* packed,
                    const void* x_zero, void* y, int threads) {
  const ConvGeometry& g = conv.geometry;
  const DepthwiseRows rows = rows_for(conv.x_type, conv.y_type);
  const int32_t zero = zero_point(conv.x_zero_type, x_zero, 0);
  const int64_t work = g.taps() * g.out[2] * g.out_channels;
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(work, 1));
  parallel_for(threads, g.batch * g.out[0] * g.out[1], grain, [&](int64_t begin, int64_t end) {
    rows(conv, x, packed, zero, y, begin, end);
  });
}

}  // namespace rlx::cpu
