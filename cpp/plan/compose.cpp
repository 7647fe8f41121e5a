// Runs the steps of one Selection with operands that another one chose.
#include "plan/compose.h"

#include <algorithm>

namespace rlx::plan {
namespace {

struct State : StepState {
  std::unique_ptr<StepState> inner;
  std::vector<void*> operands;
};

class Redirected : public StepBody {
 public:
  Redirected(std::shared_ptr<const StepBody> inner, std::vector<Place> operands, size_t workspace)
      : inner_(std::move(inner)), operands_(std::move(operands)), workspace_(workspace) {}

  std::unique_ptr<StepState> make_state() const override {
    auto state = std::make_unique<State>();
    state->inner = inner_->make_state();
    state->operands.resize(operands_.size());
    return state;
  }

  void run(const RunArgs& args) const override {
    auto& state = static_cast<State&>(*args.state);
    for (size_t i = 0; i < operands_.size(); ++i) state.operands[i] = operands_[i].address(args);
    RunArgs inner = args;
    inner.operands = state.operands.data();
    inner.workspace = static_cast<std::byte*>(args.workspace) + workspace_;
    inner.state = state.inner.get();
    inner_->run(inner);
  }

 private:
  std::shared_ptr<const StepBody> inner_;
  std::vector<Place> operands_;
  size_t workspace_;
};

}  // namespace

void* Place::address(const RunArgs& args) const {
  switch (kind) {
    case Kind::absent: return nullptr;
    case Kind::operand: return args.operands[at];
    case Kind::workspace: return static_cast<std::byte*>(args.workspace) + at;
    case Kind::packed: break;
  }
  return const_cast<void*>(bytes.get());
}

Place Composer::reserve(size_t bytes) {
  const size_t at = reserved_;
  reserved_ = aligned(reserved_ + bytes);
  return Place::workspace(at);
}

void Composer::add(Selection part, std::vector<Place> operands) {
  parts_.push_back({std::move(part), std::move(operands)});
}

void Composer::add_epilogue(const SelectFunction& select, const SelectRequest& request,
                            const RegionPtr& region, size_t first_extra,
                            const TensorDesc& product, const Place& at) {
  const size_t inputs = request.inputs.size();
  std::vector<TensorDesc> descs = {product};
  std::vector<Place> operands = {at};
  for (size_t i = first_extra; i < inputs; ++i) {
    descs.push_back(request.inputs[i]);
    operands.push_back(Place::operand(i));
  }
  for (size_t i = 0; i < request.outputs.size(); ++i) {
    operands.push_back(Place::operand(inputs + i));
  }
  const Prim prim = *region;
  const SelectRequest part{prim,           descs, request.outputs, request.numbers,
                           request.threads, "",   request.packs};
  add(select(part), std::move(operands));
}

Selection Composer::finish(std::string rung, std::string reason) {
  Selection whole;
  whole.rung = std::move(rung);
  whole.reason = std::move(reason);
  whole.workspace = reserved_;
  for (Part& part : parts_) {
    for (SelectedStep& step : part.selection.steps) {
      whole.steps.push_back({step.kind, std::make_shared<Redirected>(std::move(step.body),
                                                                     part.operands, reserved_)});
    }
    whole.workspace = std::max(whole.workspace, reserved_ + part.selection.workspace);
    whole.creation_seconds += part.selection.creation_seconds;
  }
  return whole;
}

}  // namespace rlx::plan
