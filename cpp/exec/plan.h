// A Plan: one stage of a program at known dims, with its memory layout and its steps. Immutable
// but for the table of its successors. Plans of a program form chains from the first stage on.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "backend.h"
#include "plan/storage.h"

namespace rlx {

using PlanKey = std::vector<int64_t>;  // numbers that became known before the stage

struct PlanKeyHash {
  size_t operator()(const PlanKey& key) const {
    uint64_t h = key.size();
    for (int64_t x : key) h = (h ^ uint64_t(x)) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
    return size_t(h);
  }
};

struct Plan;
using PlanPtr = std::shared_ptr<Plan>;
using PlanTable = std::unordered_map<PlanKey, PlanPtr, PlanKeyHash>;

// Where an operand of a node lies.
struct Operand {
  enum class Place : uint8_t { absent, constant, arena, outside };
  Place place = Place::absent;
  ValueId root = -1;                // outside: set for each run
  size_t offset = 0;                // arena
  const void* constant = nullptr;
  size_t bytes = 0;                 // arena: of its block
};

// What a Move makes when nothing is copied: elements of its source, from `offset` on.
struct View {
  ValueId source = -1;              // a root
  Dims strides;
  int64_t offset = 0;               // elements
};

struct PlannedNode {
  const Node* node = nullptr;
  Selection selection;              // at the planned dims; no steps when nothing is to do
  uint32_t first_operand = 0;
  size_t workspace_offset = 0;
  std::optional<View> view;         // its output: then it has no steps
  bool varying = false;             // selected again when a capacity symbol changes
  bool in_place = false;
  bool empty = false;               // all outputs have no elements
};

// A value in the arena that a later stage reads.
struct Kept {
  ValueId root;
  size_t offset, bytes;
};

// A program output that this stage's nodes write where the caller wants it.
struct DirectOutput {
  size_t output;
  ValueId root;
  Dims shape;
};

struct Plan {
  size_t stage = 0;
  std::vector<Number> symbols, numbers;  // as far as known when the stage was bound
  std::vector<PlannedNode> nodes;        // of a Segment
  std::vector<Operand> operands;         // each node's inputs, then its outputs
  std::vector<DirectOutput> direct;
  std::vector<Kept> kept;                // alive after this stage
  std::vector<std::shared_ptr<const void>> uploads;  // weights as the device has them
  plan::Storage storage;
  size_t arena_bytes = 0;                // this stage needs
  size_t kept_end = 0;                   // end of the highest kept block
  size_t traffic = 0;                    // bytes that the nodes read and write
  size_t footprint = 0;                  // host bytes, estimated, for the cache's cap
  double creation_seconds = 0;           // of library primitives
  int threads = 1;
  bool with_state = false;

  PlanTable successors;                  // guarded by the cache's lock
  std::atomic<uint64_t> last_used{0};
  std::atomic<bool> evicted{false};
};

}  // namespace rlx
