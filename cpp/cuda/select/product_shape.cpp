// The sizes and strides of a product: batch axes merged, rows that share B joined.
#include "cuda/select/product_choice.h"

namespace rlx::cuda {
namespace {

constexpr size_t fixed_operands = MatMul::operands;

// Strides of the leading axes of `x` against those of the product; 0 where it repeats.
Dims batch_strides(const TensorDesc& x, size_t rank) {
  Dims strides;
  const size_t missing = rank + 2 - x.shape.size();
  for (size_t k = 0; k < rank; ++k) {
    const bool repeats = k < missing || x.shape[k - missing] == 1;
    strides.push_back(repeats ? 0 : x.strides[k - missing]);
  }
  return strides;
}

bool present(const SelectRequest& request, size_t k) {
  return k < request.inputs.size() && request.inputs[k].dtype != DType::none;
}

// Without an epilogue the product is what is wanted: only small floats are added in another type.
DType accumulation(const MatMul& prim, DType y) {
  if (prim.epilogue) return prim.accumulate;
  return is_float(y) && y != DType::float64 ? DType::float32 : y;
}

void find_batch(ProductShape& s, const TensorDesc& a, const TensorDesc& b, size_t rank) {
  Dims batch(rank, 1);
  for (const TensorDesc* x : {&a, &b}) {
    const size_t missing = rank + 2 - x->shape.size();
    for (size_t k = missing; k < rank; ++k) {
      if (batch[k] == 1) batch[k] = x->shape[k - missing];
    }
  }
  Layout layout = merged(batch, {batch_strides(a, rank), batch_strides(b, rank)});
  Dims &extents = layout.extents, &left = layout.strides[0], &right = layout.strides[1];
  const bool one = s.m == 1;
  if (right.back() == 0 && (one || left.back() == s.m * s.a_row)) {
    if (one) s.a_row = left.back();
    s.m *= extents.back();
    extents.pop_back(), left.pop_back(), right.pop_back();
  }
  if (extents.size() > 3) {
    throw Error(ErrorKind::unsupported, "a product over more than 3 separate batch axes");
  }
  s.batches = element_count(extents);
  s.batch = extents, s.a_batch = left, s.b_batch = right;
}

}  // namespace

ProductShape product_shape(const MatMul& prim, const SelectRequest& request, const Tools& tools) {
  const TensorDesc &a = request.inputs[0], &b = request.inputs[1];
  const size_t ra = a.shape.size(), rb = b.shape.size();
  ProductShape s;
  s.a = a.dtype, s.b = b.dtype;
  s.accumulate = accumulation(prim, request.outputs[0].dtype);
  s.zero_points = present(request, 2) || present(request, 3);
  s.tf32 = tools.options.tf32;
  s.m = a.shape[ra - (prim.trans_a ? 1 : 2)];
  s.k = a.shape[ra - (prim.trans_a ? 2 : 1)];
  s.n = b.shape[rb - (prim.trans_b ? 2 : 1)];
  s.a_row = a.strides[ra - (prim.trans_a ? 1 : 2)];
  s.a_column = a.strides[ra - (prim.trans_a ? 2 : 1)];
  s.b_row = b.strides[rb - (prim.trans_b ? 1 : 2)];
  s.b_column = b.strides[rb - (prim.trans_b ? 2 : 1)];
  find_batch(s, a, b, std::max(ra, rb) - 2);
  // An axis of one element has no step: then the other one is dense.
  if (s.m == 1 && s.a_column != 1) s.a_row = 1;
  if (s.n == 1 && s.b_row != 1) s.b_column = 1;
  for (const TensorDesc& y : request.outputs) s.result_bytes += int64_t(y.bytes());
  for (size_t k = fixed_operands; k < request.inputs.size(); ++k) {
    if (present(request, k)) s.result_bytes += int64_t(request.inputs[k].bytes());
  }
  return s;
}

}  // namespace rlx::cuda
