// Collects the times of stages and steps.
#include "exec/profile.h"

namespace rlx {

void Profiler::end_run(size_t runs) {
  run_ends.push_back(now());
  if (run_ends.size() > 1) return;
  run_begins.reserve(runs), run_ends.reserve(runs);
  events.reserve(events.size() * runs);
}

void Profiler::begin_stage(const Unit& unit, const PlanPtr& plan) {
  const auto [found, fresh] = index_.try_emplace(plan.get(), int64_t(plans.size()));
  if (fresh) plans.push_back({&unit, plan});
  open_.push_back({found->second, now()});
}

void Profiler::end_stage() {
  const Open stage = open_.back();
  open_.pop_back();
  const auto run = int64_t(run_ends.size());
  events.push_back({run, stage.plan, -1, 0, int64_t(open_.size()), stage.begin, now()});
}

void Profiler::end_step(size_t node, size_t step, int64_t device_ns) {
  const auto run = int64_t(run_ends.size()), depth = int64_t(open_.size());
  const int64_t end = device_ns < 0 ? now() : step_begin_ + device_ns;
  events.push_back(
      {run, open_.back().plan, int64_t(node), int64_t(step), depth, step_begin_, end});
}

}  // namespace rlx
