// A CUDA driver without a card: memory is the host's, kernels run on fibers, streams are empty.
#pragma once

#include <memory>

#include "cuda/driver.h"

namespace rlx::emu {

enum class FiberOrder { ascending, descending };

std::unique_ptr<cuda::Driver> make_driver(FiberOrder order);

}  // namespace rlx::emu
