// Which block of memory each value of a segment has: lifetimes, aliases, in-place, offsets.
// Pure functions of plain data; primitives and devices are not known here.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/memory.h"

namespace rlx::plan {

// A value whose alias is itself; `outside` ones have memory elsewhere and get no block.
struct StoredValue {
  size_t bytes = 0;
  bool outside = false;
  bool kept = false;  // read after the segment
};

// The input of a node whose memory an output may take over once nothing else reads it.
struct InPlacePair {
  int16_t input, output;  // positions among reads and writes
};

struct NodeUse {
  std::span<const int32_t> reads, writes;  // values, aliases resolved; -1: absent
  std::span<const InPlacePair> in_place;
  size_t workspace = 0;
};

struct Storage {
  std::vector<int32_t> block_of;        // for each value; -1: outside or not of this segment
  std::vector<Block> blocks;            // those of values, then one for each workspace
  std::vector<int32_t> workspace_block; // for each node; -1: none
  std::vector<size_t> offsets;          // for each block
  std::vector<bool> in_place;           // for each node: an output took an input's block
  size_t bytes = 0;                     // arena size

  size_t offset_of(int32_t value) const { return offsets[size_t(block_of[size_t(value)])]; }
};

// Lays out a segment. `reserved` blocks are values of earlier segments, among `outside` ones.
Storage lay_out(std::span<const StoredValue> values, std::span<const NodeUse> nodes,
                std::span<const Reserved> reserved, size_t gap = 0);

}  // namespace rlx::plan
