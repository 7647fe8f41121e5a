// A GPU that is not there: plans are made for it and kernels compiled, nothing runs.
#pragma once

#include "cuda/driver.h"

namespace rlx::cuda {

// What selection asks of a device of this compute capability; memory is addresses only.
std::shared_ptr<Driver> make_offline_driver(int capability);

}  // namespace rlx::cuda
