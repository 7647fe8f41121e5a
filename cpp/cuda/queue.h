// A Context's Queue on a GPU: its stream, staging memory, random counter and recorded graphs.
#pragma once

#include "backend.h"
#include "cuda/driver.h"
#include "cuda/memory_pool.h"
#include "cuda/weights.h"

namespace rlx::cuda {

// Its work waits until `weights` are on the device; what went wrong with `user`'s is thrown then.
std::unique_ptr<Queue> make_queue(std::shared_ptr<Driver> driver, uint64_t random,
                                  std::shared_ptr<MemoryPool> pool,
                                  std::shared_ptr<Weights> weights, const void* user);

}  // namespace rlx::cuda
