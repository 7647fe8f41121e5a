// Sorting pairs of key and place that a kernel has put in device memory.
#pragma once

#include "cuda/select/select.h"
#include "kernels/params/sort.h"

namespace rlx::cuda {

// The steps that sort each of outer x inner lines of `padded` (a power of two) keys, equal ones
// by place; `launch` has keys and places bound. `type` only picks the form of the kernel.
void add_sort_passes(LaunchBuilder<params::Sort>& launch, DType type, const Tools& tools,
                     Selection& selection);

}  // namespace rlx::cuda
