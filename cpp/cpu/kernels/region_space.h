// The iteration space of a Region with few axes: what its operands allow to merge is merged.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/small_vector.h"

namespace rlx::cpu {

// One axis of an operand: its index is (i[axis] / div) % mod (no modulus for 0).
struct AxisUse {
  int access;       // whose axis this is
  int axis;         // of the Region's shape; -1: always index 0
  int64_t extent;   // of the operand's axis; 1 broadcasts
  int64_t stride;   // in elements
  int64_t div = 1, mod = 0;
};

// Offsets along one axis of a space that no stride describes.
struct AxisTable {
  int axis;
  std::vector<int64_t> offsets;
};

struct Access {
  Dims strides;  // one for each axis of the space
  std::vector<AxisTable> tables;

  int64_t offset_along(int axis, int64_t index) const {
    int64_t offset = strides[size_t(axis)] * index;
    for (const AxisTable& t : tables) {
      if (t.axis == axis) offset += t.offsets[size_t(index)];
    }
    return offset;
  }
  bool tabled(int axis) const {
    for (const AxisTable& t : tables) {
      if (t.axis == axis) return true;
    }
    return false;
  }
};

struct Space {
  Dims extents;       // none is 1; empty: a single element
  int row_axes = 0;   // how many of them come from the first `row_rank` axes
  std::vector<Access> accesses;
};

// Throws Error(internal) when an access leaves its operand.
Space make_space(std::span<const int64_t> shape, int row_rank, int accesses,
                 std::span<const AxisUse> uses);

// Makes blocks of a transposed operand short: where an operand is contiguous along another axis
// than the last, that axis comes second to last, before a part of the last one of at most
// `width`. Does nothing where no access gains, or the last axis has no such divisor.
void block_transposed(Space& space, int accesses, int64_t width);

}  // namespace rlx::cpu
