// Matrix products by our own kernels: the chosen one, or the one that takes every type and layout.
#include "cuda/select/epilogue.h"
#include "cuda/select/product_choice.h"
#include "kernels/params/matmul.h"

namespace rlx::cuda {
namespace {

constexpr size_t fixed_operands = MatMul::operands;

bool present(const SelectRequest& request, size_t k) {
  return k < request.inputs.size() && request.inputs[k].dtype != DType::none;
}

std::string zero_name(const SelectRequest& request, size_t k) {
  return storage_name(present(request, k) ? request.inputs[k].dtype : DType::int8);
}

Selection tiled_product(const ProductShape& s, const MatMul& prim, const SelectRequest& request,
                        const Tools& tools) {
  const TensorDesc &a = request.inputs[0], &b = request.inputs[1];
  const DType accumulate = s.accumulate;
  LaunchBuilder<params::MatMul> launch;
  params::MatMul& p = launch.params;
  fill(s, p);
  p.alpha = prim.alpha;
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
  return one_step("tiled kernel", launch.finish(tools.jit.get(kernel), blocks_of(tiles, 256)));
}

// Products by a weight that tensor cores refuse: of few rows by gemv, which a card that has met
// more rows must not compile any more, nor the other way round: both are asked for at once.
std::optional<Selection> by_rows(const ProductShape& shape, const std::string& refusal,
                                 const MatMul& prim, const SelectRequest& request,
                                 const Tools& tools) {
  const auto asked = product_rung(request.force);
  const bool other = asked == ProductRung::tiled || asked == ProductRung::gemv;
  if (other || !request.inputs[1].constant) return std::nullopt;
  ProductShape few = shape;
  few.m = std::min(shape.m, gemv_rows);
  if (!gemv_refusal(few).empty()) return std::nullopt;
  Selection many = tiled_product(shape, prim, request, tools);
  many.reason = gemv_refusal(shape);
  const ProductChoice choice = choose_product(few, tools.driver.info(), ProductRung::gemv);
  Selection made = chosen_product(choice, few, prim, request, tools);
  if (shape.m > gemv_rows) made = std::move(many);
  made.reason = refusal + "; " + made.reason;
  return made;
}

}  // namespace

Selection select_matmul_kernel(const MatMul& prim, const SelectRequest& request,
                               const Tools& tools) {
  if (request.outputs[0].count() == 0) return {};
  const ProductShape shape = product_shape(prim, request, tools);
  const ProductChoice choice =
      choose_product(shape, tools.driver.info(), product_rung(request.force));
  if (choice.rung != ProductRung::tiled) {
    return chosen_product(choice, shape, prim, request, tools);
  }
  if (auto made = by_rows(shape, choice.reason, prim, request, tools)) return std::move(*made);
  Selection selection = tiled_product(shape, prim, request, tools);
  selection.reason = choice.reason;
  return selection;
}

}  // namespace rlx::cuda
