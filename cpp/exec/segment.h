// The Plan of a Segment: every node selected, every value placed.
#pragma once

#include "exec/bind.h"

namespace rlx {

// Fills nodes, operands, storage and kept values of `plan`, whose numbers are settled; `kept` are
// the arena's values of earlier stages.
void bind_segment(const BindRequest& request, const Segment& segment, std::span<const Kept> kept,
                  Plan& plan);

}  // namespace rlx
