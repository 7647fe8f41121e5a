// Reductions: one step, rows read through the prologue where there is one.
#include "cpu/kernels/reduce.h"

#include "cpu/select/select.h"

namespace rlx::cpu {
namespace {

class ReduceStep final : public StepBody {
 public:
  ReduceStep(const ReduceProgram::Spec& spec) : program_(spec), inputs_(spec.inputs.size()) {}

  void run(const RunArgs& args) const override {
    program_.run(args.operands, args.operands[inputs_], args.workspace, args.threads);
  }
  const ReduceProgram& program() const { return program_; }

 private:
  ReduceProgram program_;
  size_t inputs_;
};

}  // namespace

Selection select_reduce(const Reduce& prim, const SelectRequest& request) {
  ReduceProgram::Spec spec;
  spec.prim = &prim;
  spec.inputs = request.inputs;
  spec.numbers = request.numbers;
  spec.output = request.outputs[0].dtype;
  spec.threads = request.threads;
  auto step = std::make_shared<ReduceStep>(spec);
  Selection selection;
  selection.workspace = step->program().workspace();
  selection.rung = "reduce";
  selection.reason = step->program().splits_reduction() ? "threads share each reduction"
                                                        : "threads share the results";
  selection.steps.push_back({StepKind::launch, std::move(step)});
  return selection;
}

}  // namespace rlx::cpu
