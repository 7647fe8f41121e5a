// How many bits a value takes in a packed constant.
#pragma once

#include "core/dtype.h"

namespace rlx {

constexpr int bits_of(DType t) {
  switch (t) {
    case DType::uint4: case DType::int4: case DType::float4e2m1: return 4;
    case DType::uint2: case DType::int2: return 2;
    default: return int(8 * size_of(t));
  }
}

}  // namespace rlx
