// Sorting pairs of key and place that a kernel has put in device memory.
#pragma once

#include "cuda/select/select.h"
#include "kernels/params/sort.h"

namespace rlx::cuda {

// The steps that sort each of outer x inner lines of `padded` (a power of two) keys, equal ones
// by place; `launch` has keys and places bound. Up to 2048 keys take one step, 4096 take
// three, 8192 six: what stays within 2048 is done in shared memory.
void add_sort_passes(LaunchBuilder<params::Sort>& launch, const Tools& tools,
                     Selection& selection);

}  // namespace rlx::cuda
