// Element types by their names in kernels/include/element.h.
#include "cuda/select/types.h"

#include "core/error.h"

namespace rlx::cuda {

std::string storage_name(DType type) {
  switch (type) {
    case DType::float32: return "float";
    case DType::float64: return "double";
    case DType::int8: return "signed char";
    case DType::uint8: return "unsigned char";
    case DType::int16: return "short";
    case DType::uint16: return "unsigned short";
    case DType::int32: return "int";
    case DType::uint32: return "unsigned";
    case DType::int64: case DType::string: return "long long";
    case DType::uint64: return "unsigned long long";
    case DType::boolean: return "rlx::Bool";
    case DType::float16: return "rlx::F16";
    case DType::bfloat16: return "rlx::BF16";
    case DType::complex64: return "rlx::C64";
    case DType::complex128: return "rlx::C128";
    case DType::float8e4m3fn: return "rlx::F8E4M3FN";
    case DType::float8e4m3fnuz: return "rlx::F8E4M3FNUZ";
    case DType::float8e5m2: return "rlx::F8E5M2";
    case DType::float8e5m2fnuz: return "rlx::F8E5M2FNUZ";
    case DType::float4e2m1: return "rlx::F4E2M1";
    case DType::float8e8m0: return "rlx::F8E8M0";
    case DType::uint4: return "rlx::U4";
    case DType::int4: return "rlx::I4";
    case DType::uint2: return "rlx::U2";
    case DType::int2: return "rlx::I2";
    case DType::none: break;
  }
  throw Error(ErrorKind::internal, "an absent operand has no element type");
}

DType compute_type(DType storage) {
  switch (storage) {
    case DType::int4: case DType::int2: return DType::int8;
    case DType::uint4: case DType::uint2: return DType::uint8;
    case DType::string: return DType::int64;
    case DType::float64: return DType::float64;
    default: return is_float(storage) ? DType::float32 : storage;
  }
}

std::string compute_name(DType type) {
  const DType compute = compute_type(type);
  return compute == DType::boolean ? "bool" : storage_name(compute);
}

std::string integer_name(size_t bytes) {
  switch (bytes) {
    case 1: return "unsigned char";
    case 2: return "unsigned short";
    case 4: return "unsigned";
    case 8: return "unsigned long long";
    default: return "uint4";
  }
}

std::string define(const std::string& name, const std::string& value) {
  return name + "=" + value;
}
std::string define(const std::string& name, int64_t value) {
  return name + "=" + std::to_string(value);
}

}  // namespace rlx::cuda
