// Dispatch from a DType to the C++ type that stores it, for kernels written once for all types.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "core/dtype.h"
#include "core/error.h"
#include "core/half.h"

namespace rlx::cpu {

template <class T>
struct Storage {
  using type = T;
  // What arithmetic runs in: float for the half types, the type itself otherwise.
  using wide = std::conditional_t<std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>,
                                  float, T>;
};

// f(Storage<T>{}) for every type whose values have an order; Error(unsupported) otherwise.
template <class F>
auto with_ordered(DType type, F&& f) {
  switch (type) {
    case DType::float32: return f(Storage<float>{});
    case DType::float64: return f(Storage<double>{});
    case DType::float16: return f(Storage<Float16>{});
    case DType::bfloat16: return f(Storage<Bfloat16>{});
    case DType::int8: case DType::int4: case DType::int2: return f(Storage<int8_t>{});
    case DType::uint8: case DType::uint4: case DType::uint2: case DType::boolean:
      return f(Storage<uint8_t>{});
    case DType::int16: return f(Storage<int16_t>{});
    case DType::uint16: return f(Storage<uint16_t>{});
    case DType::int32: return f(Storage<int32_t>{});
    case DType::uint32: return f(Storage<uint32_t>{});
    case DType::int64: case DType::string: return f(Storage<int64_t>{});
    case DType::uint64: return f(Storage<uint64_t>{});
    default:
      throw Error(ErrorKind::unsupported, std::string("no kernel for ") + name_of(type));
  }
}

template <class T>
bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return value != value;
  } else {
    return false;
  }
}

}  // namespace rlx::cpu
