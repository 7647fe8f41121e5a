// Random numbers: one draw, then the Context's counter moves on unless the node is seeded.
#include <bit>

#include "cuda/select/parts.h"
#include "kernels/params/random.h"

namespace rlx::cuda {

Selection select_random(const Random& prim, const SelectRequest& request, const Tools& tools) {
  const TensorDesc& y = request.outputs[0];
  LaunchBuilder<params::Random> launch;
  params::Random& p = launch.params;
  p.count = y.count();
  if (p.count == 0) return {};
  p.a = prim.a, p.b = prim.b;
  DType source = DType::float32;
  if (prim.kind == RandomKind::bernoulli || prim.kind == RandomKind::multinomial) {
    source = request.inputs[0].dtype;
    launch.bind(p.x, Source::operand(0));
  }
  if (prim.kind == RandomKind::multinomial) {
    p.classes = request.inputs[0].shape[1];
    p.samples = y.shape[1];
  }
  launch.bind(p.y, Source::operand(request.inputs.size()));
  if (prim.seed) p.seed = std::bit_cast<uint32_t>(float(*prim.seed));
  else launch.bind(p.counter, Source::random());
  KernelSpec kernel{"kernels/random.cu", "draw",
                    {define("RLX_SOURCE", storage_name(source)),
                     define("RLX_TARGET", storage_name(y.dtype)),
                     define("RLX_FORM", int64_t(prim.kind))},
                    {}};
  Selection selection = one_step("philox", launch.finish(tools.jit.get(kernel),
                                                         walk_of(tools, p.count)));
  if (!prim.seed) {
    kernel.defines = {define("RLX_FORM", 4)};
    selection.steps.push_back(launch.finish(tools.jit.get(kernel), blocks_of(1, 32)));
  }
  return selection;
}

}  // namespace rlx::cuda
