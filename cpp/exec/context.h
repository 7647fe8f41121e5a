// All that changes while a program runs: memory, step states, operand tables, stage results.
// One run has a Context for itself; the Contexts of subgraphs hang below and share its arena.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "exec/counters.h"
#include "exec/facts.h"
#include "exec/plan.h"
#include "exec/value.h"
#include "plan/lanes.h"

namespace rlx {

// Memory that a Context keeps from run to run for a value whose size a stage finds. Branches may
// make a value on the host and on the device in turns: each side has its own.
class Buffer {
 public:
  // At least `bytes` of the Queue's device, or of the host; contents are kept only up to `keep` of
  // the old ones, which lie there too.
  void* reserve(size_t bytes, Counters& counters, size_t keep = 0, Queue* queue = nullptr);
  void* data(bool on_device) const { return sides_[on_device].memory.get(); }

 private:
  struct Side {
    std::shared_ptr<void> memory;
    size_t capacity = 0;
  };
  Side sides_[2];  // of the host, of the device
};

// What one node changes while it runs.
struct NodeState {
  std::vector<std::unique_ptr<StepState>> states;  // of each step; may be null
  std::unique_ptr<Selection> selection;            // of a varying node, at the actual dims
  std::shared_ptr<void> workspace;                 // when that needs more than was planned
};

// A value outside the arena as a device with memory of its own sees it.
struct Staged {
  ValueId root = -1;
  bool written = false;                  // by the plan's nodes; else read
  std::shared_ptr<void> memory;          // of the device, for a value that lies on the host
  size_t capacity = 0;
  void* address = nullptr;               // in this run
};

// A walk of the plan's nodes with the staged values at these addresses.
struct RecordedWalk {
  std::vector<void*> addresses;
  std::unique_ptr<Recording> recording;  // null: seen once
};

// A Plan ready to run in one Context.
struct PlanState {
  explicit PlanState(PlanPtr plan);
  void set_base(std::byte* to);
  void add_outside(uint32_t operand, ValueId root);
  void spread(size_t lane_count);        // fills `lanes`

  PlanPtr plan;
  std::byte* base = nullptr;             // of the plan's share of the arena
  std::vector<void*> operands;           // those outside the arena are set by each run
  std::vector<uint32_t> outside;         // their places in `operands`
  std::vector<NodeState> nodes;
  std::vector<int64_t> actual;           // numbers that the varying nodes were selected for

  // --- on a device with a Queue ---
  std::vector<Staged> staged;            // distinct roots among `outside`
  std::vector<uint32_t> staged_at;       // of each of `outside`: its index there
  std::vector<RecordedWalk> walks;       // most recently used first
  bool recordable = true;
  std::vector<plan::LaneStep> lanes;     // of each node, when there are several
};

class Context {
 public:
  explicit Context(const Facts& facts);

  // The state of a plan whose memory begins at `base`.
  PlanState& state_of(const PlanPtr& plan, std::byte* base);
  Context& child(size_t index, const Facts& facts);
  void forget_states();  // of all plans: they are made again

  PlanKey key;                             // scratch of the run
  PlanKey first_key;                       // of first_plan: repeated runs need no lookup
  PlanPtr first_plan;
  std::vector<void*> data;                 // of each root outside the arena
  std::vector<bool> on_device;             // of each of them: the host cannot read it
  std::vector<RunValue> values;            // of each value that is no Segment's
  std::vector<Buffer> buffers;             // of each value that a stage makes
  // Of the body of a Loop or Scan: what its outputs are in turns, and device copies of its inputs;
  // of a branch the first: outputs that nobody reads.
  std::vector<Buffer> handed[2], given;
  std::vector<Number> symbols, numbers;    // actual ones, of a program with capacities

 private:
  std::unordered_map<const Plan*, std::unique_ptr<PlanState>> plans_;
  std::vector<std::unique_ptr<Context>> children_;
};

}  // namespace rlx
