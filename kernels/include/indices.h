// Index tensors: negative indices count from the end, others outside the axis are a fault.
#pragma once

#include "kernels/include/platform.h"
#include "kernels/include/types.h"

namespace rlx {

// The index inside [0, length); a bad one becomes -1 and sets bit 0 of *fault.
template <class I>
RLX_FN long long checked_index(const I* indices, unsigned long long at, long long length,
                               unsigned long long* fault) {
  long long i = (long long)(indices[at]);
  if (i < 0) i += length;
  if (i >= 0 && i < length) return i;
  atomicOr(fault, 1ull);
  return -1;
}

}  // namespace rlx
