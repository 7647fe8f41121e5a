// The Plan of a Segment: every node selected, every value placed.
#pragma once

#include "exec/bind.h"

namespace rlx {

// Fills nodes, operands, storage and kept values of `plan`, whose numbers are settled; `kept` are
// the arena's values of earlier stages.
void bind_segment(const BindRequest& request, const Segment& segment, std::span<const Kept> kept,
                  Plan& plan);

// Selects the nodes of a bound Segment again that read a constant whose bytes were `replaced`.
// `adopt`: their steps and constants become the plan's; else the plan stays, whose packed forms of
// these constants were filled anew where they lie.
void select_again(const BindRequest& request, const Segment& segment,
                  const std::vector<bool>& replaced, bool adopt, Plan& plan);

}  // namespace rlx
