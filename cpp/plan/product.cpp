// Finds the strides of a batched product's operands.
#include "plan/product.h"

namespace rlx::plan {

// The batch of a and b against c: right-aligned, broadcast, neighbours that run on made one.
std::vector<BatchAxis> batch_axes(const TensorDesc& a, const TensorDesc& b, const TensorDesc& c) {
  const size_t rank = c.shape.size() - 2;
  const auto stride = [&](const TensorDesc& desc, size_t axis) -> int64_t {
    const size_t missing = c.shape.size() - desc.shape.size();
    if (axis < missing || desc.shape[axis - missing] == 1) return 0;
    return desc.strides[axis - missing];
  };
  std::vector<BatchAxis> axes;
  for (size_t axis = 0; axis < rank; ++axis) {
    if (c.shape[axis] == 1) continue;
    const BatchAxis next{c.shape[axis], stride(a, axis), stride(b, axis), c.strides[axis]};
    if (!axes.empty()) {
      BatchAxis& last = axes.back();
      const int64_t n = next.extent;
      if (last.a == next.a * n && last.b == next.b * n && last.c == next.c * n) {
        last = {last.extent * n, next.a, next.b, next.c};
        continue;
      }
    }
    axes.push_back(next);
  }
  return axes;
}

// The last two axes, read as [rows, cols], or transposed; nothing when neither is dense.
std::optional<Matrix> matrix_of(const TensorDesc& desc, bool trans) {
  const size_t rank = desc.shape.size();
  int64_t rows = desc.shape[rank - 2], cols = desc.shape[rank - 1];
  int64_t by_row = desc.strides[rank - 2], by_col = desc.strides[rank - 1];
  if (by_col == 1 || cols == 1) return Matrix{rows == 1 ? cols : by_row, trans};
  if (by_row == 1 || rows == 1) return Matrix{by_col, !trans};
  return std::nullopt;
}

}  // namespace rlx::plan
