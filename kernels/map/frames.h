// Overlapping pieces of a signal: an item copies a run of one piece.
#pragma once

#include "kernels/include/element.h"
#include "kernels/params/map.h"

namespace rlx::map {

inline constexpr int frame_run = 64;  // elements of an item

// x [B, length, parts] -> y [B, frames, n, parts]; ints: step. Items: B, frames, runs of n * parts.
template <class T> RLX_FN void frames(const params::Map& p, long long item) {
  const params::MapOperand &x = p.operands[0], &y = p.operands[1];
  const long long parts = x.shape[2], size = y.shape[2] * parts;
  const long long runs = (size + frame_run - 1) / frame_run, start = item % runs * frame_run;
  const long long row = item / runs, frame = row % y.shape[1], batch = row / y.shape[1];
  const T* from = static_cast<const T*>(x.data) +
                  (batch * x.shape[1] + frame * p.ints[0]) * parts + start;
  T* to = static_cast<T*>(y.data) + row * size + start;
  const long long count = size - start < frame_run ? size - start : frame_run;
  for (long long k = 0; k < count; ++k) to[k] = from[k];
}

}  // namespace rlx::map
