// How the operands of a batched matrix product lie in memory, for the select functions of devices.
#pragma once

#include <optional>
#include <vector>

#include "backend.h"

namespace rlx::plan {

struct BatchAxis {
  int64_t extent, a, b, c;  // strides in elements; 0 repeats
};

// The batch of a and b against c: right-aligned, broadcast, neighbours that run on made one.
std::vector<BatchAxis> batch_axes(const TensorDesc& a, const TensorDesc& b, const TensorDesc& c);

struct Matrix {  // rows `ld` apart, perhaps of the transpose
  int64_t ld = 0;
  bool trans = false;
};

// The last two axes, read as [rows, cols], or transposed; nothing when neither is dense.
std::optional<Matrix> matrix_of(const TensorDesc& desc, bool trans);

}  // namespace rlx::plan
