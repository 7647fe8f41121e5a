// Matrix products by our own kernels: the rung that takes every type, layout and size.
#include "cuda/select/epilogue.h"
#include "kernels/params/matmul.h"

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

void fill_batch(const Dims& batch, const Dims& a, const Dims& b, params::MatMul& p) {
  const Layout layout = merged(batch, {a, b});
  if (layout.extents.size() > 3) {
    throw Error(ErrorKind::unsupported, "a product over more than 3 separate batch axes");
  }
  const size_t lead = 3 - layout.extents.size();
  for (size_t k = 0; k < layout.extents.size(); ++k) {
    p.batch[lead + k] = params::Divisor(layout.extents[k]);
    p.a_batch[lead + k] = layout.strides[0][k];
    p.b_batch[lead + k] = layout.strides[1][k];
  }
  p.batches = element_count(batch);
}

// Without an epilogue the product is what is wanted: only small floats are added in another type.
DType accumulation(const MatMul& prim, DType y) {
  if (prim.epilogue) return prim.accumulate;
  return is_float(y) && y != DType::float64 ? DType::float32 : y;
}

std::string zero_name(const SelectRequest& request, size_t k) {
  return storage_name(present(request, k) ? request.inputs[k].dtype : DType::int8);
}

}  // namespace

Selection select_matmul_kernel(const MatMul& prim, const SelectRequest& request,
                               const Tools& tools) {
  const TensorDesc &a = request.inputs[0], &b = request.inputs[1];
  const size_t ra = a.shape.size(), rb = b.shape.size(), rank = std::max(ra, rb) - 2;
  LaunchBuilder<params::MatMul> launch;
  params::MatMul& p = launch.params;
  p.m = a.shape[ra - (prim.trans_a ? 1 : 2)];
  p.k = a.shape[ra - (prim.trans_a ? 2 : 1)];
  p.n = b.shape[rb - (prim.trans_b ? 2 : 1)];
  p.a_row = a.strides[ra - (prim.trans_a ? 1 : 2)];
  p.a_column = a.strides[ra - (prim.trans_a ? 2 : 1)];
  p.b_row = b.strides[rb - (prim.trans_b ? 1 : 2)];
  p.b_column = b.strides[rb - (prim.trans_b ? 2 : 1)];
  Dims batch(rank, 1);
  for (const TensorDesc* x : {&a, &b}) {
    const size_t missing = rank + 2 - x->shape.size();
    for (size_t k = missing; k < rank; ++k) {
      if (batch[k] == 1) batch[k] = x->shape[k - missing];
    }
  }
  fill_batch(batch, batch_strides(a, rank), batch_strides(b, rank), p);
  p.alpha = prim.alpha;
  if (p.batches * p.m * p.n == 0) return {};

  const DType accumulate = accumulation(prim, request.outputs[0].dtype);
  const OutRegion out = out_region(prim.epilogue, request, fixed_operands, accumulate);
  bind_region(launch, p.out, out.source, [&](int place) { return out.operand(place); });
  launch.bind(p.a, Source::operand(0));
  launch.bind(p.b, Source::operand(1));
  const bool a_zero = present(request, 2), b_zero = present(request, 3);
  if (a_zero) {
    launch.bind(p.a_zero, Source::operand(2));
    p.a_zero_row = request.inputs[2].count() > 1;
  }
  if (b_zero) {
    launch.bind(p.b_zero, Source::operand(3));
    p.b_zero_column = request.inputs[3].count() > 1;
  }
  KernelSpec kernel{"kernels/matmul.cu", "matmul",
                    {define("RLX_A", storage_name(a.dtype)), define("RLX_B", storage_name(b.dtype)),
                     define("RLX_ACCUMULATE", compute_name(accumulate)),
                     define("RLX_A_ALONG_K", p.a_column == 1), define("RLX_A_ZERO", a_zero),
                     define("RLX_B_ALONG_N", p.b_column == 1), define("RLX_B_ZERO", b_zero),
                     define("RLX_A_ZERO_TYPE", zero_name(request, 2)),
                     define("RLX_B_ZERO_TYPE", zero_name(request, 3)),
                     define("RLX_SCALED", prim.alpha != 1.0),
                     define("RLX_VECTOR", fitting_vector(out.source.vector, p.n))},
                    {{"generated/out.h", out.source.text}}};
  const int64_t tiles = ceil_div(p.m, 64) * ceil_div(p.n, 64) * p.batches;
  Selection selection = one_step("tiled kernel", launch.finish(tools.jit.get(kernel),
                                                               blocks_of(tiles, 256)));
  selection.reason = "takes every type and layout";
  return selection;
}

}  // namespace rlx::cuda
