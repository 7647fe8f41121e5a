// A Context's arena on the device: addresses once, memory behind them as plans need it.
#pragma once

#include "backend.h"
#include "cuda/driver.h"

namespace rlx::cuda {

std::unique_ptr<Arena> make_arena(std::shared_ptr<Driver> driver);

}  // namespace rlx::cuda
