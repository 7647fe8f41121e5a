// Makes the CPU Device.
#pragma once

#include <memory>

#include "backend.h"

namespace rlx::cpu {

std::shared_ptr<const Device> make_cpu_device();

}  // namespace rlx::cpu
