// Which outputs of a primitive may be written over which of its inputs (prims.py: IN_PLACE).
#pragma once

#include <span>

#include "backend.h"
#include "core/small_vector.h"
#include "plan/storage.h"

namespace rlx::plan {

using InPlacePairs = SmallVector<InPlacePair, 4>;

// Pairs in order of preference; `numbers` are the program's expressions, evaluated.
InPlacePairs in_place_pairs(const Prim& prim, std::span<const TensorDesc> inputs,
                            std::span<const TensorDesc> outputs, std::span<const Number> numbers);

}  // namespace rlx::plan
