// Index tensors of Gather and Scatter: int32 or int64, negative from the end, checked.
#pragma once

#include <atomic>
#include <string>

#include "backend.h"
#include "cpu/team.h"

namespace rlx::cpu {

struct Indices {
  const void* data;
  bool narrow;  // int32

  int64_t operator[](int64_t i) const {
    return narrow ? static_cast<const int32_t*>(data)[i] : static_cast<const int64_t*>(data)[i];
  }
  // Index i of an axis of n, once checked: counted from the start.
  int64_t place(int64_t i, int64_t n) const {
    const int64_t index = (*this)[i];
    return index < 0 ? index + n : index;
  }
};

// i made non-negative for an axis of n; Error(input) when it is out of range.
inline int64_t checked_index(int64_t i, int64_t n) {
  if (i < -n || i >= n) {
    throw Error(ErrorKind::input, "index " + std::to_string(i) + " is out of range")
        .expected_got("in [" + std::to_string(-n) + ", " + std::to_string(n - 1) + "]",
                      std::to_string(i));
  }
  return i < 0 ? i + n : i;
}

// checked_index() of all of them, before anything is written.
inline void check_indices(const Indices& indices, int64_t count, int64_t n, int threads) {
  std::atomic<bool> beyond{false};
  parallel_for(threads, count, 1 << 15, [&](int64_t begin, int64_t end) {
    bool any = false;
    for (int64_t i = begin; i < end; ++i) any |= indices[i] < -n || indices[i] >= n;
    if (any) beyond = true;
  });
  for (int64_t i = 0; beyond && i < count; ++i) checked_index(indices[i], n);
}

inline bool narrow_indices(const TensorDesc& desc) {
  if (desc.dtype == DType::int32 || desc.dtype == DType::int64) return desc.dtype == DType::int32;
  throw Error(ErrorKind::unsupported, "indices must be int32 or int64")
      .expected_got("int32 or int64", name_of(desc.dtype));
}

// Element-wise indices stay within data along every other axis.
inline void require_within(const TensorDesc& indices, const TensorDesc& data, size_t axis) {
  for (size_t k = 0; k < indices.shape.size(); ++k) {
    if (k == axis || indices.shape[k] <= data.shape[k]) continue;
    throw Error(ErrorKind::input, "indices are longer than data along axis " + std::to_string(k))
        .expected_got("at most " + std::to_string(data.shape[k]), std::to_string(indices.shape[k]));
  }
}

}  // namespace rlx::cpu
