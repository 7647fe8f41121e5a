// Regions: one launch of a function generated for the expression and the form of its accesses.
#include "cuda/select/parts.h"

namespace rlx::cuda {

Selection select_region(const Region& prim, const SelectRequest& request, const Tools& tools) {
  RegionSpec spec;
  spec.region = &prim;
  spec.numbers = request.numbers;
  spec.inputs = request.inputs;
  spec.outputs = request.outputs;
  const RegionSource region = region_source(spec);
  if (region.params.count == 0) return {};
  LaunchBuilder<params::Region> launch;
  bind_region(launch, launch.params, region, [&](int operand) {
    return Source::operand(operand >= 0 ? size_t(operand)
                                        : request.inputs.size() + size_t(-1 - operand));
  });
  KernelSpec kernel{"kernels/region.cu", "region", {define("RLX_VECTOR", region.vector)},
                    {{"generated/region.h", region.text}}};
  Selection selection = one_step(
      "generated region", launch.finish(tools.jit.get(kernel),
                                        walk_of(tools, region.params.count / region.vector)));
  selection.reason = std::to_string(prim.ops.size()) + " ops, " + std::to_string(region.vector) +
                     " neighbours a thread";
  return selection;
}

}  // namespace rlx::cuda
