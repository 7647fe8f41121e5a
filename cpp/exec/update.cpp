// Weights with other bytes in a compiled program: what plans keep of them is made again in place.
#include <algorithm>

#include "exec/bind.h"
#include "exec/executable.h"
#include "exec/executable_pool.h"
#include "exec/segment.h"
#include "plan/weight_updates.h"
#include "program/form.h"

namespace rlx {
namespace {

const plan::WeightUpdates* in_place(const Device& device) {
  return dynamic_cast<const plan::WeightUpdates*>(&device);
}

std::vector<ProgramPtr> children_of(const Program& program) {
  std::vector<ProgramPtr> children;
  for (const Stage& stage : program.stages) {
    for (ProgramPtr& child : programs_of(stage)) children.push_back(std::move(child));
  }
  return children;
}

// A form packed of several constants is found by all their addresses: it cannot be filled again
// where it lies.
bool packed_together(const Unit& unit, const std::vector<bool>& replaced) {
  const Facts& facts = unit.facts;
  const auto reads = [&](ValueId v) {
    return v >= 0 && facts.is_constant(v) &&
           replaced[size_t(facts.value(facts.root[size_t(v)]).constant)];
  };
  for (size_t stage = 0; stage < facts.program->stages.size(); ++stage) {
    const Segment* segment = facts.segment(stage);
    if (!segment) continue;
    for (const Node& node : segment->nodes) {
      if (!std::holds_alternative<Recurrent>(node.prim)) continue;
      if (std::ranges::any_of(node.inputs, reads)) return true;
    }
  }
  return false;
}

bool owns_all(const Unit& unit, const plan::WeightUpdates& device, const Program& now) {
  std::vector<bool> replaced(now.constants.size());
  for (size_t i = 0; i < replaced.size(); ++i) {
    const Constant& constant = unit.facts.constants[i];
    replaced[i] = constant.source != now.constants[i].source;
    if (replaced[i] && !device.only_mine(constant)) return false;
  }
  if (packed_together(unit, replaced)) return false;
  const auto children = children_of(now);
  for (size_t k = 0; k < children.size(); ++k) {
    if (!owns_all(*unit.children[k], device, *children[k])) return false;
  }
  return true;
}

}  // namespace

void Unit::replace_constants(const Program& now) {
  const Device& device = *shared.device;
  const auto* kept = in_place(device);
  std::vector<bool> replaced(now.constants.size());
  for (size_t i = 0; i < replaced.size(); ++i) {
    Constant& constant = facts.constants[i];
    replaced[i] = constant.source != now.constants[i].source;
    if (!replaced[i]) continue;
    if (kept) kept->replace(constant, now.constants[i]);
    shared.packs->forget(constant);
    constant = now.constants[i];
  }
  plans->for_each([&](Plan& plan) {
    const bool bound = plan.stage < facts.program->stages.size();
    const Segment* segment = bound ? facts.segment(plan.stage) : nullptr;
    if (!segment) return;
    const BindRequest request{.facts = facts,
                              .device = device,
                              .packs = *shared.packs,
                              .force = shared.options.force,
                              .threads = plan.threads,
                              .with_state = plan.with_state};
    select_again(request, *segment, replaced, kept == nullptr, plan);
  });
  const auto programs = children_of(now);
  for (size_t k = 0; k < programs.size(); ++k) children[k]->replace_constants(*programs[k]);
}

bool Executable::can_update(const Program& now) const {
  // The table of a program with strings may have grown by those of other weights.
  if (main_->facts.uses_strings || form_of(now) != form_of(*main_->facts.program)) return false;
  const auto* device = in_place(*shared_.device);
  return !device || owns_all(*main_, *device, now);
}

void Executable::update(const Program& now) {
  main_->replace_constants(now);
  if (in_place(*shared_.device)) return;
  for (const auto& entry : pool_->free) entry->context->forget_states();
}

Executable::Pause::Pause(Executable& executable)
    : pool_((executable.notice_fork(), *executable.pool_)) {
  std::unique_lock lock(pool_.mutex);
  pool_.returned.wait(lock, [&] { return !pool_.paused; });
  pool_.paused = true;
  pool_.returned.wait(lock, [&] { return pool_.free.size() == size_t(pool_.made); });
}

Executable::Pause::~Pause() {
  {
    const std::lock_guard lock(pool_.mutex);
    pool_.paused = false;
  }
  pool_.returned.notify_all();
}

}  // namespace rlx
