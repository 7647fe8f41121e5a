// Regions: one step that runs the compiled expression tile by tile.
#include "cpu/kernels/region.h"

#include "cpu/select/select.h"

namespace rlx::cpu {
namespace {

class RegionStep final : public StepBody {
 public:
  RegionStep(const RegionProgram::Spec& spec) : program_(spec), inputs_(spec.inputs.size()) {}

  void run(const RunArgs& args) const override {
    program_.run(args.operands, const_cast<void* const*>(args.operands) + inputs_, args.workspace,
                 args.threads);
  }
  const RegionProgram& program() const { return program_; }

 private:
  RegionProgram program_;
  size_t inputs_;
};

}  // namespace

Selection select_region(const Region& prim, const SelectRequest& request) {
  RegionProgram::Spec spec;
  spec.region = &prim;
  spec.numbers = request.numbers;
  spec.inputs = request.inputs;
  spec.outputs = request.outputs;
  auto step = std::make_shared<RegionStep>(spec);
  Selection selection;
  selection.workspace = step->program().scratch_bytes() * size_t(std::max(request.threads, 1));
  selection.rung = "region interpreter";
  selection.reason = std::to_string(step->program().steps()) + " vectorised loops a tile";
  selection.steps.push_back({StepKind::launch, std::move(step)});
  return selection;
}

}  // namespace rlx::cpu
