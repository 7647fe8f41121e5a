// Reads the sizes, batches and layouts of matrix products.
#include "cpu/select/matmul_task.h"

#include <algorithm>

#include "cpu/select/compose.h"

namespace rlx::cpu {
namespace {

void check_operands(const MatMulTask& task) {
  if (task.prim.b_type != DType::none) return;  // quantised_of() looks at those
  const TensorDesc &a = task.a(), &b = task.b();
  const auto last = [](const TensorDesc& desc, bool trans) {
    const size_t rank = desc.shape.size();
    std::pair dims{desc.shape[rank - 2], desc.shape[rank - 1]};
    if (trans) std::swap(dims.first, dims.second);
    return dims;
  };
  if (last(a, task.prim.trans_a) != std::pair{task.m, task.k} ||
      last(b, task.prim.trans_b) != std::pair{task.k, task.n}) {
    throw Error(ErrorKind::model, "the operands of a matrix product do not fit each other");
  }
  const auto fits = [&](size_t input, int64_t count) {
    return !task.given(input) || task.request.inputs[input].count() == 1 ||
           task.request.inputs[input].count() == count;
  };
  if (!fits(2, task.m) || !fits(3, task.n)) {
    throw Error(ErrorKind::unsupported,
                "zero points of a matrix product are one, or one a row of a or column of b");
  }
}

}  // namespace

MatMulTask::MatMulTask(const MatMul& prim, const SelectRequest& request)
    : prim(prim), request(request), product(request.outputs[0]) {
  if (prim.epilogue) {
    product.dtype = prim.accumulate;
    product.strides = Dims(product.shape.size(), 1);
    for (size_t i = product.shape.size(); i-- > 1;) {
      product.strides[i - 1] = product.strides[i] * product.shape[i];
    }
  }
  const size_t rank = a().shape.size();
  m = product.shape[product.shape.size() - 2];
  n = product.shape[product.shape.size() - 1];
  k = a().shape[prim.trans_a ? rank - 2 : rank - 1];
  check_operands(*this);
}

std::vector<BatchAxis> MatMulTask::batch_axes() const {
  const Dims& shape = product.shape;
  const auto stride = [&](const TensorDesc& desc, size_t axis) -> int64_t {
    const size_t missing = shape.size() - desc.shape.size();
    if (axis < missing || desc.shape[axis - missing] == 1) return 0;
    return desc.strides[axis - missing];
  };
  std::vector<BatchAxis> axes;
  for (size_t axis = 0; axis + 2 < shape.size(); ++axis) {
    if (shape[axis] == 1) continue;
    const BatchAxis next{shape[axis], stride(a(), axis), stride(b(), axis), product.strides[axis]};
    if (!axes.empty()) {
      BatchAxis& last = axes.back();
      const int64_t extent = next.extent;
      if (last.a == next.a * extent && last.b == next.b * extent && last.c == next.c * extent) {
        last = {last.extent * extent, next.a, next.b, next.c};
        continue;
      }
    }
    axes.push_back(next);
  }
  return axes;
}

std::vector<BatchAxis> MatMulTask::place_batch(const std::vector<BatchAxis>& axes,
                                               params::Gemm& shape) {
  const size_t inside = std::min<size_t>(axes.size(), 3);
  for (size_t i = 0; i < inside; ++i) {
    const BatchAxis& axis = axes[axes.size() - inside + i];
    const size_t at = 3 - inside + i;
    shape.batch[at] = axis.extent;
    shape.a_batch[at] = axis.a;
    shape.b_batch[at] = axis.b;
    shape.c_batch[at] = axis.c;
  }
  return {axes.begin(), axes.end() - int64_t(inside)};
}

int64_t MatMulTask::constant_matrices() const {
  const int64_t size = k * n;
  if (!b().constant || !b().contiguous() || size == 0) return 0;
  return b().count() / size;
}

Selection MatMulTask::finish(Selection core) const {
  if (!prim.epilogue) return core;
  Composer composer;
  const std::string rung = core.rung + ", region", reason = core.reason;
  const TensorDesc& y = request.outputs[0];
  const bool in_place = y.dtype == product.dtype && y.contiguous();
  const Place at = in_place ? Place::operand(request.inputs.size())
                            : composer.reserve(product.bytes());
  std::vector<Place> operands;
  for (size_t i = 0; i < matmul_operands; ++i) operands.push_back(Place::operand(i));
  operands.push_back(at);
  composer.add(std::move(core), std::move(operands));
  composer.add_epilogue(request, prim.epilogue, matmul_operands, product, at);
  return composer.finish(rung, reason);
}

std::optional<Matrix> matrix_of(const TensorDesc& desc, bool trans) {
  const size_t rank = desc.shape.size();
  const int64_t rows = desc.shape[rank - 2], cols = desc.shape[rank - 1];
  const int64_t by_row = desc.strides[rank - 2], by_col = desc.strides[rank - 1];
  if (by_col == 1 || cols == 1) return Matrix{rows == 1 ? cols : by_row, trans};
  if (by_row == 1 || rows == 1) return Matrix{by_col, !trans};
  return std::nullopt;
}

}  // namespace rlx::cpu
