// A Context's Queue on a GPU: its stream, staging memory, random counter and recorded graphs.
#pragma once

#include "backend.h"
#include "cuda/driver.h"

namespace rlx::cuda {

std::unique_ptr<Queue> make_queue(std::shared_ptr<Driver> driver, uint64_t random);

}  // namespace rlx::cuda
