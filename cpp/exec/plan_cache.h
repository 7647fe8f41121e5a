// The Plans of one program: chains of stages found by their numbers, least recently used out.
#pragma once

#include <functional>
#include <mutex>

#include "exec/plan.h"

namespace rlx {

class PlanCache {
 public:
  explicit PlanCache(size_t cap_bytes) : cap_(cap_bytes) {}

  // The Plan after `previous` (null: of the first stage) under `key`; made by `bind` if absent,
  // by one thread at a time.
  PlanPtr get(Plan* previous, const PlanKey& key, const std::function<PlanPtr()>& bind);

  // Null when absent.
  PlanPtr find(Plan* previous, const PlanKey& key);

  // A Plan found without the cache's help was used.
  void touch(Plan& plan) { plan.last_used.store(clock_.load(std::memory_order_relaxed)); }

  // The chain that ran last, for explain().
  std::vector<PlanPtr> last_chain();

  void for_each(const std::function<void(Plan&)>& visit);

  size_t bytes() const { return bytes_; }

 private:
  void evict(const Plan* newest);

  std::mutex mutex_, binding_;
  PlanTable first_;
  std::atomic<uint64_t> clock_{0};
  size_t bytes_ = 0;
  const size_t cap_;
};

}  // namespace rlx
