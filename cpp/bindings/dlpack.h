// The structures of DLPack, without and with a version, and its names of element types.
#pragma once

#include <cstdint>

#include "core/dtype.h"

namespace rlx::bindings {

struct DLDevice {
  int32_t type;  // 1: host, 2: CUDA, 13: CUDA's managed memory
  int32_t id;
};

struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
  bool operator==(const DLDataType&) const = default;
};

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape, *strides;  // strides in elements; null when dense
  uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};

struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(DLManagedTensorVersioned*);
  uint64_t flags;
  DLTensor tensor;
};

constexpr int32_t dl_cuda = 2, dl_cuda_managed = 13;
constexpr uint32_t dl_major = 1;            // that we read; a minor one changes no layout
constexpr uint64_t dl_read_only = 1;

struct DLTypeRow {
  DType dtype;
  DLDataType type;
  const char* typestr;  // of the array interface; null where it has no name
};

constexpr DLTypeRow dl_types[] = {
    {DType::float32, {2, 32, 1}, "<f4"},    {DType::float64, {2, 64, 1}, "<f8"},
    {DType::float16, {2, 16, 1}, "<f2"},    {DType::bfloat16, {4, 16, 1}, nullptr},
    {DType::int8, {0, 8, 1}, "|i1"},        {DType::int16, {0, 16, 1}, "<i2"},
    {DType::int32, {0, 32, 1}, "<i4"},      {DType::int64, {0, 64, 1}, "<i8"},
    {DType::uint8, {1, 8, 1}, "|u1"},       {DType::uint16, {1, 16, 1}, "<u2"},
    {DType::uint32, {1, 32, 1}, "<u4"},     {DType::uint64, {1, 64, 1}, "<u8"},
    {DType::boolean, {6, 8, 1}, "|b1"},     {DType::complex64, {5, 64, 1}, "<c8"},
    {DType::complex128, {5, 128, 1}, "<c16"}, {DType::float8e4m3fn, {10, 8, 1}, nullptr},
    {DType::float8e5m2, {12, 8, 1}, nullptr},
};

}  // namespace rlx::bindings
