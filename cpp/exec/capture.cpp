// Copies the outputs of nodes while they are there: the arena reuses their memory soon.
#include "exec/capture.h"

#include "exec/bind.h"
#include "exec/executable.h"

namespace rlx {

void Capture::begin_stage(const Unit& unit, const PlanPtr& plan) {
  open_.push_back({&unit, plan, bounds_of(unit.facts, plan->symbols, plan->numbers)});
}

void Capture::end_node(size_t node, void* const* operands) {
  const auto& [unit, plan, bounds] = open_.back();
  const Node& planned = *plan->nodes[node].node;
  std::vector<TensorDesc> descs;
  describe_node(unit->facts, planned, {plan->numbers, bounds}, {}, descs);
  CapturedNode& kept = nodes.emplace_back(unit, plan->stage, node, std::vector<Tensor>());
  for (size_t i = planned.inputs.size(); i < descs.size(); ++i) {
    const TensorDesc& desc = descs[i];
    Tensor tensor{desc.dtype, desc.shape, operands[i], nullptr};
    const bool there = desc.dtype != DType::none && operands[i];
    kept.outputs.push_back(there ? copy_of(tensor) : Tensor{});
  }
}

}  // namespace rlx
