// The Region that a product's results pass through: its epilogue, or a plain store.
#pragma once

#include "cuda/select/parts.h"

namespace rlx::cuda {

// A function "out" whose load 0 is given in `type`; its loads 1.. are the inputs from
// `first_extra` on, its results the node's outputs.
struct OutRegion {
  RegionSource source;
  size_t first_extra = 0, inputs = 0;
  Source operand(int place) const {
    return Source::operand(place >= 0 ? first_extra + size_t(place) - 1
                                      : inputs + size_t(-1 - place));
  }
};
OutRegion out_region(const RegionPtr& epilogue, const SelectRequest& request, size_t first_extra,
                     DType type, int vector_limit = 4);

}  // namespace rlx::cuda
