// Checks quantised weights of a product before a kernel reads them.
#include "plan/quantised.h"

#include <algorithm>

#include "core/divide.h"
#include "core/packed.h"

namespace rlx::plan {
namespace {

constexpr size_t weights_operand = 1, zeros_operand = 3, scales_operand = 4;

int64_t matrices_of(const TensorDesc& x) {
  int64_t count = 1;
  for (size_t i = 0; i + 2 < x.shape.size(); ++i) count *= x.shape[i];
  return count;
}

std::string text(const Dims& shape) {
  std::string made;
  for (int64_t dim : shape) made += (made.empty() ? "" : " x ") + std::to_string(dim);
  return made;
}

[[noreturn]] void refuse(const char* what, const std::string& expected, const Dims& got) {
  Error error(ErrorKind::model, what);
  error.expected_got(expected, text(got));
  throw error;
}

// The same axes before the last two, or one matrix of scales for all.
bool same_matrices(const TensorDesc& b, const TensorDesc& scale) {
  if (matrices_of(scale) == 1) return true;
  return scale.shape.size() == b.shape.size() &&
         std::equal(b.shape.begin(), b.shape.end() - 2, scale.shape.begin());
}

}  // namespace

QuantisedSizes quantised_sizes(const MatMul& prim, const SelectRequest& request) {
  const TensorDesc &a = request.inputs[0], &b = request.inputs[weights_operand];
  const TensorDesc &zero = request.inputs[zeros_operand], &scale = request.inputs[scales_operand];
  const size_t rank = b.shape.size();
  QuantisedSizes s;
  s.matrices = matrices_of(b);
  s.n = b.shape[rank - 2], s.row_bytes = b.shape[rank - 1];
  s.k = a.shape[a.shape.size() - 1];
  s.zeros = zero.dtype != DType::none;
  s.one_zero = s.zeros && zero.count() == 1;
  const int64_t columns = s.row_bytes * 8 / bits_of(prim.b_type);
  if (columns < s.k) {
    refuse("quantised weights have fewer columns than their operand",
           std::to_string(s.k) + " values in a row", Dims{columns});
  }
  const int64_t rows = ceil_div(s.n, prim.block_n), tiles = ceil_div(s.k, prim.block_k);
  const std::string covering = std::to_string(rows) + " x " + std::to_string(tiles);
  const size_t scale_rank = scale.shape.size();
  if (scale_rank < 2 || scale.shape[scale_rank - 2] < rows ||
      scale.shape[scale_rank - 1] < tiles) {
    refuse("the scales of quantised weights do not cover them", covering, scale.shape);
  }
  if (!same_matrices(b, scale)) {
    refuse("there are no scales for each matrix of quantised weights",
           std::to_string(s.matrices) + " matrices of " + covering, scale.shape);
  }
  if (s.zeros && !s.one_zero && zero.shape != scale.shape) {
    refuse("there is no zero point for each scale of quantised weights", text(scale.shape),
           zero.shape);
  }
  if (!b.contiguous() || !scale.contiguous() || (s.zeros && !zero.contiguous())) {
    throw Error(ErrorKind::unsupported, "quantised weights with strides");
  }
  s.scale_row = scale.shape[scale_rank - 1];
  s.scale_matrix = matrices_of(scale) == 1 ? 0 : scale.shape[scale_rank - 2] * s.scale_row;
  return s;
}

}  // namespace rlx::plan
