// An Observer that writes down when every stage and step of the runs began and ended.
#pragma once

#include <chrono>
#include <unordered_map>
#include <vector>

#include "exec/observer.h"

namespace rlx {

// node -1: the whole stage. Times are in ns since the profiler was made.
struct TimedEvent {
  int64_t run, plan, node, step, depth, begin, end;
};

class Profiler final : public Observer {
 public:
  struct Seen {
    const Unit* unit;
    PlanPtr plan;
  };

  void begin_run() { run_begins.push_back(now()); }
  // Room for the runs to come: they are like the first, so that none of them allocates.
  void end_run(size_t runs);

  void begin_stage(const Unit& unit, const PlanPtr& plan) override;
  void end_stage() override;
  void begin_step() override { step_begin_ = now(); }
  void end_step(size_t node, size_t step, int64_t device_ns) override;

  std::vector<Seen> plans;           // by TimedEvent::plan
  std::vector<TimedEvent> events;    // in order of their ends
  std::vector<int64_t> run_begins, run_ends;

 private:
  struct Open {
    int64_t plan, begin;
  };
  int64_t now() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::steady_clock::now() - start_).count();
  }

  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::unordered_map<const Plan*, int64_t> index_;
  std::vector<Open> open_;           // the stages that are being run, outermost first
  int64_t step_begin_ = 0;
};

}  // namespace rlx
