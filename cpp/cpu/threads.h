// How many threads the CPU kernels should use here.
#pragma once

namespace rlx::cpu {

// Physical cores in the affinity mask, no more than the cgroup's quota; at least 1.
int available_threads();

}  // namespace rlx::cpu
