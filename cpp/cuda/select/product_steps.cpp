// Products on tensor cores and of few rows as steps: one launch, or two where k is split.
#include "cuda/select/epilogue.h"
#include "cuda/select/product_choice.h"

namespace rlx::cuda {
namespace {

constexpr size_t fixed_operands = MatMul::operands;

KernelSpec tensor_cores_kernel(const ProductShape& s) {
  return {"kernels/matmul_mma.cu", "matmul_mma",
          {define("RLX_T", storage_name(s.a)), define("RLX_A_ALONG_K", s.a_along_k()),
           define("RLX_B_ALONG_K", s.b_along_k())},
          {}};
}

LaunchShape tensor_cores_shape(const ProductShape& s, const ProductChoice& c) {
  const TileForm& f = params::tile_forms[c.form];
  return blocks_of(ceil_div(s.m, f.m) * ceil_div(s.n, f.n) * s.batches * c.splits,
                   threads_of(f), tile_bytes(f, size_of(s.a), s.a_along_k(), s.b_along_k()));
}

KernelSpec gemv_kernel(const ProductShape& s) {
  const bool a_dense = s.a_along_k() && s.b_along_k() && s.a_chunk() >= s.b_chunk() &&
                       s.b_chunk() * int64_t(size_of(s.a)) <= 32;
  return {"kernels/gemv.cu", "gemv",
          {define("RLX_A", storage_name(s.a)), define("RLX_B", storage_name(s.b)),
           define("RLX_CHUNK", s.b_chunk()), define("RLX_B_ALONG_K", s.b_along_k()),
           define("RLX_A_DENSE", a_dense)},
          {}};
}

LaunchShape gemv_shape(const ProductShape& s, const ProductChoice& c) {
  const int64_t chunk = s.b_chunk(), size = int64_t(size_of(s.b));
  const int64_t columns = s.b_along_k() ? 32 : chunk * std::min<int64_t>(32, 128 / (chunk * size));
  return blocks_of(ceil_div(s.m, 4) * ceil_div(s.n, columns) * s.batches * c.splits, 256);
}

}  // namespace

Selection chosen_product(const ProductChoice& choice, const ProductShape& s, const MatMul& prim,
                         const SelectRequest& request, const Tools& tools) {
  const bool cores = choice.rung == ProductRung::tensor_cores, split = choice.splits > 1;
  const OutRegion out = out_region(prim.epilogue, request, fixed_operands, s.accumulate, 4);
  LaunchBuilder<params::TileProduct> launch;
  params::TileProduct& p = launch.params;
  fill(s, p);
  p.splits = int(choice.splits);
  p.k_part = choice.k_part;
  p.form = choice.form;
  p.tile_m = params::tile_forms[choice.form].m, p.tile_n = params::tile_forms[choice.form].n;
  p.a_run = std::min(4, s.a_chunk() * int(size_of(s.a)));
  p.b_run = std::min(4, s.b_chunk() * int(size_of(s.b)));
  p.alpha = float(prim.alpha);
  launch.bind(p.a, Source::operand(0));
  launch.bind(p.b, Source::operand(1));
  bind_region(launch, p.out, out.source, [&](int at) { return out.operand(at); });
  const int vector = fitting_vector(out.source.vector, s.n);
  KernelSpec spec = cores ? tensor_cores_kernel(s) : gemv_kernel(s);
  spec.defines.push_back(define("RLX_VECTOR", vector));
  spec.generated.push_back({"generated/out.h", out.source.text});
  const KernelPtr kernel = tools.jit.get(spec);
  Selection made;
  made.rung = cores ? "tensor cores" : "gemv";
  made.reason = choice.reason;
  if (split) {
    made.workspace = size_t(choice.splits * s.batches * s.m * s.n) * sizeof(float);
    launch.bind(p.partial, Source::workspace());
  }
  const LaunchShape shape = cores ? tensor_cores_shape(s, choice) : gemv_shape(s, choice);
  made.steps.push_back(launch.finish(kernel, shape));
  if (!split) return made;
  p.joins = 1;
  const int64_t runs = s.batches * s.m * s.n / vector;
  made.steps.push_back(launch.finish(kernel, walk_of(tools, runs, params::tile_threads)));
  return made;
}

}  // namespace rlx::cuda
