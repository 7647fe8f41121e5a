// Element types: ONNX's, by ONNX's numbers (twin of python/rlx/ir/types.py).
#pragma once

#include <cstddef>
#include <cstdint>

namespace rlx {

enum class DType : uint8_t {
  none = 0,  // an absent optional operand
  float32 = 1, uint8 = 2, int8 = 3, uint16 = 4, int16 = 5, int32 = 6, int64 = 7,
  string = 8,  // int64 ids into the string table of the run
  boolean = 9, float16 = 10, float64 = 11, uint32 = 12, uint64 = 13,
  complex64 = 14, complex128 = 15, bfloat16 = 16,
  float8e4m3fn = 17, float8e4m3fnuz = 18, float8e5m2 = 19, float8e5m2fnuz = 20,
  uint4 = 21, int4 = 22, float4e2m1 = 23, float8e8m0 = 24, uint2 = 25, int2 = 26,
};

constexpr int dtype_count = 27;

// Bytes of one value in activations; sub-byte types take one byte.
constexpr size_t size_of(DType t) {
  switch (t) {
    case DType::none: return 0;
    case DType::uint16: case DType::int16: case DType::float16: case DType::bfloat16: return 2;
    case DType::float32: case DType::int32: case DType::uint32: return 4;
    case DType::int64: case DType::uint64: case DType::float64: case DType::complex64:
    case DType::string: return 8;
    case DType::complex128: return 16;
    default: return 1;
  }
}

constexpr bool is_float(DType t) {
  switch (t) {
    case DType::float32: case DType::float64: case DType::float16: case DType::bfloat16:
    case DType::float8e4m3fn: case DType::float8e4m3fnuz: case DType::float8e5m2:
    case DType::float8e5m2fnuz: case DType::float4e2m1: case DType::float8e8m0: return true;
    default: return false;
  }
}

constexpr bool is_half(DType t) { return t == DType::float16 || t == DType::bfloat16; }

constexpr bool is_complex(DType t) { return t == DType::complex64 || t == DType::complex128; }

constexpr bool is_integer(DType t) {
  return t != DType::none && t != DType::string && t != DType::boolean && !is_float(t) &&
         !is_complex(t);
}

const char* name_of(DType t);  // "float32", as Python's DType in lower case

}  // namespace rlx
