// Sorting lines of a tensor by (key, index), and compaction of what a condition selects.
#pragma once

#include "kernels/params/divisor.h"

namespace rlx::params {

// Lines along the middle axis of an outer x length x inner view; the first k of each line.
struct Sort {
  const void* x = nullptr;
  void* values = nullptr;
  long long* indices = nullptr;
  unsigned long long* keys = nullptr;  // of each line: `padded` of them, when they are in memory
  long long* places = nullptr;
  long long outer = 1, length = 1, inner = 1, k = 1, padded = 1;
  long long run = 2, distance = 1;     // of one step of a bitonic sort
  long long last_run = 2;              // of steps in shared memory, from `run` on
  bool largest = true;
};

constexpr int compact_axes = 8;

// The list of i < length whose condition holds, in order; then what it selects.
struct Compact {
  const void* condition = nullptr;
  const void* x = nullptr;
  void* y = nullptr;
  long long* count = nullptr;
  long long* sums = nullptr;  // of each block of conditions
  long long* list = nullptr;
  long long length = 0, blocks = 0;
  long long outer = 1, axis = 1, inner = 1;  // of x around the axis
  int axes = 0;
  Divisor extents[compact_axes];             // of x, for coordinates
};

}  // namespace rlx::params
