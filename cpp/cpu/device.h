// Makes the CPU Device.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "backend.h"

namespace rlx::cpu {

std::shared_ptr<const Device> make_cpu_device();
// What `force` may ask this device for, the fastest first, the one that never refuses last.
std::span<const std::string_view> rungs();

}  // namespace rlx::cpu
