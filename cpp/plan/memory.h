// Places blocks of memory in one arena: intervals of life in, offsets out. A pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rlx::plan {

constexpr size_t alignment = 64;

constexpr size_t aligned(size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

// A block of memory that is in use during the steps first..last, both included.
struct Block {
  size_t bytes = 0;
  int32_t first = 0, last = 0;
};

// A block whose place is given: a value that an earlier segment left behind.
struct Reserved {
  Block block;
  size_t offset = 0;
};

struct Placement {
  std::vector<size_t> offsets;  // one for each block
  size_t bytes = 0;             // what the arena must hold
};

// Blocks that are in use at the same time never overlap; each starts at a multiple of
// `alignment` and is followed by at least `gap` free bytes.
Placement place(std::span<const Block> blocks, std::span<const Reserved> reserved, size_t gap = 0);

// The most bytes in use during one step: no placement is smaller.
size_t lower_bound(std::span<const Block> blocks, std::span<const Reserved> reserved,
                   size_t gap = 0);

}  // namespace rlx::plan
