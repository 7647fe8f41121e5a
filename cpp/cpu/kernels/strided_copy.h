// Copies a strided block between tensors: what transposes, slices, concats and pads come down to.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/small_vector.h"

namespace rlx::cpu {

// Axes outermost first, adjacent ones merged; strides and offsets in elements of `size` bytes.
struct StridedCopy {
  Dims extents, from, to;
  int64_t from_offset = 0, to_offset = 0;
  int size = 4;
  bool empty = false;
};

// Merges axes that are adjacent in both tensors and orders them so that `to` is innermost.
StridedCopy make_strided_copy(Dims extents, Dims from, Dims to, int64_t from_offset,
                              int64_t to_offset, size_t element_size);

void run_strided_copy(const StridedCopy& copy, const void* from, void* to, int threads);

}  // namespace rlx::cpu
