// Norms: one step, with the prologue read row by row and the epilogue run on rows in cache.
#include "cpu/kernels/norm.h"

#include "cpu/select/select.h"

namespace rlx::cpu {
namespace {

class NormStep final : public StepBody {
 public:
  NormStep(const NormProgram::Spec& spec) : program_(spec) {}

  void run(const RunArgs& args) const override {
    program_.run(args.operands, args.workspace, args.threads);
  }
  const NormProgram& program() const { return program_; }

 private:
  NormProgram program_;
};

}  // namespace

Selection select_norm(const Norm& prim, const SelectRequest& request) {
  NormProgram::Spec spec;
  spec.prim = &prim;
  spec.inputs = request.inputs;
  spec.outputs = request.outputs;
  spec.numbers = request.numbers;
  spec.threads = request.threads;
  auto step = std::make_shared<NormStep>(spec);
  Selection selection;
  selection.workspace = step->program().workspace();
  selection.rung = "norm";
  selection.steps.push_back({StepKind::launch, std::move(step)});
  return selection;
}

}  // namespace rlx::cpu
