// Runs a body of kernels/map over its items.
#include "generated/body.h"
#include "kernels/include/index.h"

extern "C" __global__ void run_map(const rlx::params::Map p) {
  const unsigned long long items = (unsigned long long)(p.items);
  for (unsigned long long i = rlx::thread_rank(); i < items; i += rlx::thread_count()) {
    rlx::map::RLX_BODY<RLX_T>(p, (long long)(i));
  }
}
