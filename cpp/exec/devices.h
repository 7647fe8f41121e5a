// Devices beyond those that every build has, registered by the files that define them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend.h"

namespace rlx {

struct DeviceMaker {
  std::string name;
  std::function<std::shared_ptr<const Device>()> make;
};

std::vector<DeviceMaker>& extra_devices();

}  // namespace rlx
