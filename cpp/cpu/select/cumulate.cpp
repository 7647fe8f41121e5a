// Running sums and products: one step.
#include "cpu/kernels/cumulate.h"

#include "cpu/select/select.h"

namespace rlx::cpu {
namespace {

class CumulateStep final : public StepBody {
 public:
  CumulateStep(const CumulateProgram::Spec& spec) : program_(spec), inputs_(spec.inputs.size()) {}

  void run(const RunArgs& args) const override {
    program_.run(args.operands, args.operands[inputs_], args.workspace, args.threads);
  }
  const CumulateProgram& program() const { return program_; }

 private:
  CumulateProgram program_;
  size_t inputs_;
};

}  // namespace

Selection select_cumulate(const Cumulate& prim, const SelectRequest& request) {
  CumulateProgram::Spec spec;
  spec.prim = &prim;
  spec.inputs = request.inputs;
  spec.numbers = request.numbers;
  spec.output = request.outputs[0].dtype;
  spec.threads = request.threads;
  auto step = std::make_shared<CumulateStep>(spec);
  Selection selection;
  selection.workspace = step->program().workspace();
  selection.rung = "cumulate";
  selection.steps.push_back({StepKind::launch, std::move(step)});
  return selection;
}

}  // namespace rlx::cpu
