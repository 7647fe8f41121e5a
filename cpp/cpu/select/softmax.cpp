// Softmax: one step, rows read through the prologue where there is one.
#include "cpu/kernels/softmax.h"

#include "cpu/select/select.h"

namespace rlx::cpu {
namespace {

class SoftmaxStep final : public StepBody {
 public:
  SoftmaxStep(const SoftmaxProgram::Spec& spec) : program_(spec), inputs_(spec.inputs.size()) {}

  void run(const RunArgs& args) const override {
    program_.run(args.operands, args.operands[inputs_], args.workspace, args.threads);
  }
  const SoftmaxProgram& program() const { return program_; }

 private:
  SoftmaxProgram program_;
  size_t inputs_;
};

}  // namespace

Selection select_softmax(const Softmax& prim, const SelectRequest& request) {
  SoftmaxProgram::Spec spec;
  spec.prim = &prim;
  spec.inputs = request.inputs;
  spec.numbers = request.numbers;
  spec.output = request.outputs[0].dtype;
  spec.threads = request.threads;
  auto step = std::make_shared<SoftmaxStep>(spec);
  Selection selection;
  selection.workspace = step->program().workspace();
  selection.rung = "softmax";
  selection.steps.push_back({StepKind::launch, std::move(step)});
  return selection;
}

}  // namespace rlx::cpu
