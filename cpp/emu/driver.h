// A CUDA driver without a card: kernels run on fibers.
#pragma once

#include <memory>

#include "cuda/driver.h"

namespace rlx::emu {

enum class FiberOrder { ascending, descending };

// apart: memory and time are as on a card (emu/card.h), else the host's.
std::unique_ptr<cuda::Driver> make_driver(FiberOrder order, bool apart = false);

}  // namespace rlx::emu
