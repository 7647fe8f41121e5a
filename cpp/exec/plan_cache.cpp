// Lookup, insertion and eviction in the tree of Plans.
#include "exec/plan_cache.h"

namespace rlx {
namespace {

struct Leaf {
  PlanTable* table = nullptr;
  PlanTable::iterator at;
  uint64_t last_used = UINT64_MAX;
};

void oldest_leaf(PlanTable& table, const Plan* newest, Leaf& found) {
  for (auto it = table.begin(); it != table.end(); ++it) {
    Plan& plan = *it->second;
    if (!plan.successors.empty()) {
      oldest_leaf(plan.successors, newest, found);
    } else if (&plan != newest && plan.last_used < found.last_used) {
      found = {&table, it, plan.last_used};
    }
  }
}

void each_plan(const PlanTable& table, const std::function<void(Plan&)>& visit) {
  for (const auto& [key, plan] : table) {
    visit(*plan);
    each_plan(plan->successors, visit);
  }
}

}  // namespace

void PlanCache::for_each(const std::function<void(Plan&)>& visit) {
  std::lock_guard lock(mutex_);
  each_plan(first_, visit);
}

PlanPtr PlanCache::find(Plan* previous, const PlanKey& key) {
  std::lock_guard lock(mutex_);
  PlanTable& table = previous ? previous->successors : first_;
  const auto found = table.find(key);
  if (found == table.end()) return nullptr;
  found->second->last_used = ++clock_;
  return found->second;
}

PlanPtr PlanCache::get(Plan* previous, const PlanKey& key, const std::function<PlanPtr()>& bind) {
  if (PlanPtr plan = find(previous, key)) return plan;
  std::lock_guard one_at_a_time(binding_);
  if (PlanPtr plan = find(previous, key)) return plan;
  PlanPtr plan = bind();
  std::lock_guard lock(mutex_);
  (previous ? previous->successors : first_).emplace(key, plan);
  plan->last_used = ++clock_;
  // A chain whose head was evicted while it ran dies with its run: it does not count.
  if (previous && previous->evicted) {
    plan->evicted = true;
    return plan;
  }
  bytes_ += plan->footprint;
  evict(plan.get());
  return plan;
}

void PlanCache::evict(const Plan* newest) {
  while (bytes_ > cap_) {
    Leaf leaf;
    oldest_leaf(first_, newest, leaf);
    if (!leaf.table) return;
    bytes_ -= leaf.at->second->footprint;
    leaf.at->second->evicted = true;
    leaf.table->erase(leaf.at);
  }
}

std::vector<PlanPtr> PlanCache::last_chain() {
  std::lock_guard lock(mutex_);
  std::vector<PlanPtr> chain;
  for (PlanTable* table = &first_; !table->empty(); table = &chain.back()->successors) {
    PlanPtr latest;
    for (const auto& [key, plan] : *table) {
      if (!latest || plan->last_used > latest->last_used) latest = plan;
    }
    chain.push_back(latest);
  }
  return chain;
}

}  // namespace rlx
