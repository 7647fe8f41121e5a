// float16 and bfloat16 as storage: two bytes that convert to and from float, rounding to even.
#pragma once

#include <bit>
#include <cstdint>

namespace rlx {

struct Bfloat16 {
  uint16_t bits = 0;
  Bfloat16() = default;
  explicit Bfloat16(float value) {
    const uint32_t u = std::bit_cast<uint32_t>(value);
    const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
    bits = nan ? uint16_t((u >> 16) | 0x40u) : uint16_t((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
  operator float() const { return std::bit_cast<float>(uint32_t(bits) << 16); }
};

struct Float16 {
  uint16_t bits = 0;
  Float16() = default;
  explicit Float16(float value) {
    const uint32_t u = std::bit_cast<uint32_t>(value), magnitude = u & 0x7fffffffu;
    const uint16_t sign = uint16_t((u >> 16) & 0x8000u);
    if (magnitude >= 0x7f800000u) {  // infinity, or NaN with its high bits
      const uint32_t payload = magnitude > 0x7f800000u ? 0x200u | ((magnitude >> 13) & 0x3ffu) : 0u;
      bits = uint16_t(sign | 0x7c00u | payload);
    } else if (magnitude < 0x38800000u) {  // subnormal: let float addition round at 2^-24
      const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
      bits = uint16_t(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
    } else {
      const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
      const uint32_t half = (rounded - 0x38000000u) >> 13;
      bits = uint16_t(sign | (half > 0x7c00u ? 0x7c00u : half));
    }
  }
  operator float() const {
    const uint32_t sign = uint32_t(bits & 0x8000u) << 16;
    const uint32_t rest = uint32_t(bits & 0x7fffu) << 13;
    if (rest >= 0x0f800000u) return std::bit_cast<float>(sign | (rest + 0x70000000u));
    // Multiplying by 2^112 makes normal numbers and subnormals right at once.
    const float scaled = std::bit_cast<float>(rest) * std::bit_cast<float>(0x77800000u);
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(scaled));
  }
};

}  // namespace rlx
