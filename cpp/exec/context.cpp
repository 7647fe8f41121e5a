// Makes Plans ready to run in a Context and forgets those that were evicted.
#include "exec/context.h"

#include <algorithm>
#include <cstring>

namespace rlx {

void* Buffer::reserve(size_t bytes, Counters& counters, size_t keep, Queue* queue) {
  auto& [memory, capacity] = sides_[queue != nullptr];
  if (memory && bytes <= capacity) return memory.get();
  const size_t grown = std::max(bytes, capacity + capacity / 2);
  std::shared_ptr<void> larger = queue ? queue->allocate(grown) : allocate(grown);
  if (keep && queue) queue->copy(larger.get(), memory.get(), keep);
  else if (keep) std::memcpy(larger.get(), memory.get(), keep);
  memory = std::move(larger);
  capacity = grown;
  ++counters.dynamic_allocations;
  return memory.get();
}

PlanState::PlanState(PlanPtr p) : plan(std::move(p)), operands(plan->operands.size(), nullptr) {
  for (size_t i = 0; i < operands.size(); ++i) {
    const Operand& operand = plan->operands[i];
    if (operand.place == Operand::Place::outside) add_outside(uint32_t(i), operand.root);
    // Operands are void* because outputs are; steps do not write to constants.
    if (operand.place == Operand::Place::constant) {
      operands[i] = const_cast<void*>(operand.constant);
    }
  }
  nodes.resize(plan->nodes.size());
  for (size_t t = 0; t < nodes.size(); ++t) {
    for (const SelectedStep& step : plan->nodes[t].selection.steps) {
      nodes[t].states.push_back(step.body->make_state());
      recordable = recordable && step.kind != StepKind::host;
    }
  }
}

void PlanState::add_outside(uint32_t operand, ValueId root) {
  const auto same = [&](const Staged& s) { return s.root == root; };
  auto found = std::ranges::find_if(staged, same);
  if (found == staged.end()) {
    const auto written = [&](const DirectOutput& d) { return d.root == root; };
    staged.push_back({root, std::ranges::any_of(plan->direct, written), nullptr, 0, nullptr});
    found = staged.end() - 1;
  }
  outside.push_back(operand);
  staged_at.push_back(uint32_t(found - staged.begin()));
}

void PlanState::set_base(std::byte* to) {
  base = to;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Operand& operand = plan->operands[i];
    if (operand.place == Operand::Place::arena) operands[i] = base + operand.offset;
  }
}

Context::Context(const Facts& facts)
    : data(facts.program->values.size(), nullptr), on_device(data.size(), false),
      children_(facts.children.size()) {
  bool staged = false;
  for (size_t s = 0; s < facts.program->stages.size(); ++s) staged |= !facts.segment(s);
  for (ValueId v : facts.program->inputs) staged |= !facts.is_tensor(v);
  if (!staged) return;
  values.resize(data.size());
  buffers.resize(data.size());
}

PlanState& Context::state_of(const PlanPtr& plan, std::byte* base) {
  const auto found = plans_.find(plan.get());
  if (found != plans_.end()) {
    if (found->second->base != base) found->second->set_base(base);
    return *found->second;
  }
  std::erase_if(plans_, [](const auto& entry) { return entry.second->plan->evicted.load(); });
  auto state = std::make_unique<PlanState>(plan);
  state->set_base(base);
  return *(plans_[plan.get()] = std::move(state));
}

void Context::forget_states() {
  plans_.clear();
  for (auto& child : children_) {
    if (child) child->forget_states();
  }
}

Context& Context::child(size_t index, const Facts& facts) {
  auto& child = children_[index];
  if (!child) child = std::make_unique<Context>(facts);
  return *child;
}

}  // namespace rlx
