// Spreads the nodes of a segment over lanes (streams) that wait for each other. A pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rlx::plan {

// Bytes of the arena (space -1) or of something outside it, which overlaps in itself only.
struct Range {
  int64_t space = -1;
  size_t begin = 0, end = 0;
};

struct Touch {  // what one node reads and writes, its workspace among the latter
  std::vector<Range> reads, writes;
};

struct LaneStep {
  uint32_t lane = 0;
  std::vector<uint32_t> waits;  // nodes of other lanes that must be done before
  bool signals = false;         // another lane waits for this node
};

// Two nodes that touch the same bytes, one of them writing, keep their order: so memory that is
// reused is a dependency like a value.
std::vector<LaneStep> assign_lanes(std::span<const Touch> nodes, size_t lanes);

}  // namespace rlx::plan
