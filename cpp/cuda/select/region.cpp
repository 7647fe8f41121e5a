// Regions: one launch of a function generated for the expression and the form of its accesses.
//
// While that is compiled, a small one's first run goes through a kernel that interprets it, bit for
// bit the same. A walk that is recorded is never the first, so recordings hold the generated one.
#include <atomic>

#include "cuda/select/parts.h"
#include "cuda/select/region_program.h"

namespace rlx::cuda {
namespace {

class FirstInterpreted final : public StepBody {
 public:
  FirstInterpreted(std::shared_ptr<const StepBody> generated, KernelPtr kernel,
                   std::shared_ptr<const StepBody> interpreted, KernelPtr interpreter)
      : generated_(std::move(generated)), interpreted_(std::move(interpreted)),
        kernel_(std::move(kernel)), interpreter_(std::move(interpreter)) {}

  void run(const RunArgs& args) const override {
    const bool first = !ran_.exchange(true);
    const bool waits = first && !kernel_->ready() && interpreter_->ready();
    (waits ? interpreted_ : generated_)->run(args);
  }

 private:
  const std::shared_ptr<const StepBody> generated_, interpreted_;
  const KernelPtr kernel_, interpreter_;
  mutable std::atomic<bool> ran_{false};
};

template <class Params>
void bind_operands(LaunchBuilder<Params>& launch, params::Region& field,
                   const RegionSource& region, size_t inputs) {
  bind_region(launch, field, region, [&](int operand) {
    return Source::operand(operand >= 0 ? size_t(operand) : inputs + size_t(-1 - operand));
  });
}

}  // namespace

Selection select_region(const Region& prim, const SelectRequest& request, const Tools& tools) {
  RegionSpec spec;
  spec.region = &prim;
  spec.numbers = request.numbers;
  spec.inputs = request.inputs;
  spec.outputs = request.outputs;
  const RegionSource region = region_source(spec);
  if (region.params.count == 0) return {};
  const std::optional<params::RegionProgram> program = region_program(spec);
  LaunchBuilder<params::RegionProgram> steps;
  if (program) {
    bind_operands(steps, steps.params.region, region, request.inputs.size());
    steps.params = *program;
  }
  const LaunchShape each = walk_of(tools, region.params.count);
  if (program && request.force == "interpreted region") {
    Selection selection =
        one_step("interpreted region", steps.finish(tools.jit.get(interpreter()), each));
    selection.reason = "it was asked for";
    return selection;
  }
  LaunchBuilder<params::Region> launch;
  bind_operands(launch, launch.params, region, request.inputs.size());
  const KernelPtr kernel = tools.jit.get(
      {"kernels/region.cu", "region", {define("RLX_VECTOR", region.vector)},
       {{"generated/region.h", region.text}}});
  SelectedStep step =
      launch.finish(kernel, walk_of(tools, region.params.count / region.vector));
  if (program && !kernel->ready()) {
    const KernelPtr other = tools.jit.get(interpreter());
    step.body = std::make_shared<FirstInterpreted>(std::move(step.body), kernel,
                                                   steps.finish(other, each).body, other);
  }
  Selection selection = one_step("generated region", std::move(step));
  selection.reason = std::to_string(prim.ops.size()) + " ops, " + std::to_string(region.vector) +
                     " neighbours a thread";
  return selection;
}

}  // namespace rlx::cuda
