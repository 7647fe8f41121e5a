// Reads the zero points of quantised operands.
#pragma once

#include <cstdint>

#include "core/dtype.h"

namespace rlx::cpu {

// Element `index` of a tensor of int8 or uint8; 0 when there is none.
inline int32_t zero_point(DType type, const void* zeros, int64_t index) {
  if (type == DType::int8) return static_cast<const int8_t*>(zeros)[index];
  if (type == DType::uint8) return static_cast<const uint8_t*>(zeros)[index];
  return 0;
}

}  // namespace rlx::cpu
