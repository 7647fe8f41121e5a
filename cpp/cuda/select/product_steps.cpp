// Products on tensor cores and of few rows as steps: one kernel, or two where k is split.
#include <bit>

#include "cuda/select/epilogue.h"
#include "cuda/select/product_choice.h"
#include "kernels/params/tile_product.h"

namespace rlx::cuda {
namespace {

constexpr size_t fixed_operands = MatMul::operands;
using Launch = LaunchBuilder<params::TileProduct>;

KernelSpec tensor_cores_kernel(const ProductShape& s, const TileForm& f) {
  KernelSpec kernel{"kernels/matmul_mma.cu", "matmul_mma", f.defines(), {}};
  for (std::string one : {define("RLX_T", storage_name(s.a)),
                          define("RLX_A_ALONG_K", s.a_along_k()),
                          define("RLX_B_ALONG_K", s.b_along_k()),
                          define("RLX_A_CHUNK", s.a_chunk()), define("RLX_B_CHUNK", s.b_chunk())}) {
    kernel.defines.push_back(std::move(one));
  }
  return kernel;
}

LaunchShape tensor_cores_shape(const ProductShape& s, const ProductChoice& c) {
  const TileForm& f = c.tile;
  return blocks_of(ceil_div(s.m, f.m) * ceil_div(s.n, f.n) * s.batches * c.splits, f.threads(),
                   f.shared(size_of(s.a), s.a_along_k(), s.b_along_k()));
}

KernelSpec gemv_kernel(const ProductShape& s) {
  const bool a_dense = s.a_along_k() && s.b_along_k() && s.a_chunk() >= s.b_chunk() &&
                       s.b_chunk() * int64_t(size_of(s.a)) <= 32;
  return {"kernels/gemv.cu", "gemv",
          {define("RLX_A", storage_name(s.a)), define("RLX_B", storage_name(s.b)),
           define("RLX_ROWS", int64_t(std::bit_ceil(uint64_t(s.m)))),
           define("RLX_CHUNK", s.b_chunk()), define("RLX_B_ALONG_K", s.b_along_k()),
           define("RLX_A_DENSE", a_dense)},
          {}};
}

LaunchShape gemv_shape(const ProductShape& s, const ProductChoice& c) {
  const int64_t chunk = s.b_chunk(), size = int64_t(size_of(s.b));
  const int64_t columns = s.b_along_k() ? 32 : chunk * std::min<int64_t>(32, 128 / (chunk * size));
  return blocks_of(ceil_div(s.n, columns) * s.batches * c.splits, 256);
}

void add_out(Launch& launch, KernelSpec& kernel, const OutRegion& out, int vector) {
  bind_region(launch, launch.params.out, out.source, [&](int at) { return out.operand(at); });
  kernel.generated.push_back({"generated/out.h", out.source.text});
  kernel.defines.push_back(define("RLX_VECTOR", vector));
}

}  // namespace

size_t TileForm::shared(size_t item, bool a_along_k, bool b_along_k) const {
  const int64_t size = int64_t(item), k = slice / size;
  const auto elements = [&](bool along_k, int64_t extent) {
    return along_k ? extent * (k + 16 / size) : k * (extent + (size == 4 ? 8 : 16 / size));
  };
  const int64_t slices = stages * size * (elements(a_along_k, m) + elements(b_along_k, n));
  return size_t(std::max(slices, int64_t(m) * (n + 8) * 4));
}

std::vector<std::string> TileForm::defines() const {
  return {define("RLX_TILE_M", m),   define("RLX_TILE_N", n), define("RLX_WARP_M", warp_m),
          define("RLX_WARP_N", warp_n), define("RLX_SLICE", slice), define("RLX_STAGES", stages)};
}

Selection chosen_product(const ProductChoice& choice, const ProductShape& s, const MatMul& prim,
                         const SelectRequest& request, const Tools& tools) {
  const bool cores = choice.rung == ProductRung::tensor_cores, split = choice.splits > 1;
  const OutRegion out = out_region(prim.epilogue, request, fixed_operands, s.accumulate, 8);
  Launch launch;
  fill(s, launch.params);
  launch.params.splits = int(choice.splits);
  launch.params.k_part = choice.k_part;
  launch.params.alpha = float(prim.alpha);
  launch.bind(launch.params.a, Source::operand(0));
  launch.bind(launch.params.b, Source::operand(1));
  KernelSpec kernel = cores ? tensor_cores_kernel(s, choice.tile) : gemv_kernel(s);
  kernel.defines.push_back(define("RLX_SPLIT", split));
  const LaunchShape shape = cores ? tensor_cores_shape(s, choice) : gemv_shape(s, choice);
  Selection made;
  made.rung = cores ? "tensor cores" : "gemv";
  made.reason = choice.reason;
  const int vector = fitting_vector(out.source.vector, s.n);
  if (split) {
    made.workspace = size_t(choice.splits * s.batches * s.m * s.n) * sizeof(float);
    launch.bind(launch.params.partial, Source::workspace());
    kernel.defines.push_back(define("RLX_VECTOR", fitting_vector(4, s.n)));
  } else {
    add_out(launch, kernel, out, vector);
  }
  made.steps.push_back(launch.finish(tools.jit.get(kernel), shape));
  if (!split) return made;
  KernelSpec join{"kernels/matmul_join.cu", "matmul_join", {}, {}};
  const int joined = std::min(vector, 4);
  add_out(launch, join, out, joined);
  const int64_t runs = s.batches * s.m * s.n / joined;
  made.steps.push_back(launch.finish(tools.jit.get(join), walk_of(tools, runs)));
  return made;
}

}  // namespace rlx::cuda
