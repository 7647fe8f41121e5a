// Finds the loop of a Map's body by instruction set and element type.
#include "cpu/kernels/map.h"

#include "core/cpuid.h"

namespace rlx::cpu {
namespace {

const MapTable& table() {
#if defined(__x86_64__)
  if (cpu_isa() == Isa::avx512) return map_table_avx512;
  if (cpu_isa() == Isa::avx2) return map_table_avx2;
#endif
  return map_table_portable;
}

DType by_size(size_t size) {
  switch (size) {
    case 1: return DType::uint8;
    case 2: return DType::uint16;
    case 4: return DType::uint32;
    case 8: return DType::uint64;
    default: return DType::complex128;
  }
}

}  // namespace

DType map_element(params::MapTypes types, DType dtype) {
  if (types == params::MapTypes::bytes) return by_size(size_of(dtype));
  switch (dtype) {
    case DType::float32: case DType::float64: case DType::float16: case DType::bfloat16:
      return dtype;
    default: break;
  }
  if (types == params::MapTypes::real) return DType::none;
  switch (dtype) {
    case DType::boolean: case DType::uint4: case DType::uint2: return DType::uint8;
    case DType::int4: case DType::int2: return DType::int8;
    case DType::int8: case DType::uint8: case DType::int16: case DType::uint16:
    case DType::int32: case DType::uint32: case DType::int64: case DType::uint64:
      return dtype;
    default: return DType::none;
  }
}

MapLoop find_map_loop(std::string_view body, DType element) {
  for (size_t k = 0; k < table().count; ++k) {
    const MapEntry& entry = table().entries[k];
    if (entry.body == body && entry.element == element) return entry.loop;
  }
  return nullptr;
}

}  // namespace rlx::cpu
