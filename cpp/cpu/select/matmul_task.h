// A matrix product while its Selection is put together: sizes, layouts, and where results go.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backend.h"
#include "kernels/params/gemm.h"

namespace rlx::cpu {

constexpr size_t matmul_operands = MatMul::operands;  // extras of the epilogue follow

struct BatchAxis {
  int64_t extent, a, b, c;  // strides in elements; 0 repeats
};

struct Matrix {  // as the kernels want it: rows `ld` apart, perhaps of the transpose
  int64_t ld = 0;
  bool trans = false;
};

struct MatMulTask {
  MatMulTask(const MatMul& prim, const SelectRequest& request);

  const MatMul& prim;
  const SelectRequest& request;
  TensorDesc product;  // before the epilogue
  int64_t m = 0, n = 0, k = 0;

  const TensorDesc& a() const { return request.inputs[0]; }
  const TensorDesc& b() const { return request.inputs[1]; }
  bool given(size_t input) const { return request.inputs[input].dtype != DType::none; }

  // The batch of a and b against the product's: right-aligned, broadcast, neighbours that run on
  // made one.
  std::vector<BatchAxis> batch_axes() const;
  // Puts the innermost three axes into `shape`; gives the others.
  static std::vector<BatchAxis> place_batch(const std::vector<BatchAxis>& axes,
                                            params::Gemm& shape);

  // How many matrices a dense constant b is; 0 when it is something else.
  int64_t constant_matrices() const;

  // Puts the epilogue, as a step of its own, behind a core with operands a, b, zero points,
  // product. Without an epilogue it is the core.
  Selection finish(Selection core) const;
};

// The last two axes, read as [rows, cols], or transposed; nothing when neither is dense.
std::optional<Matrix> matrix_of(const TensorDesc& desc, bool trans);

// The ways to compute it. On nullopt, `refusal` says why.
std::optional<Selection> matmul_gemm(const MatMulTask& task, std::string& refusal);
std::optional<Selection> matmul_s8(const MatMulTask& task, std::string& refusal);
Selection matmul_plain(const MatMulTask& task);

}  // namespace rlx::cpu
