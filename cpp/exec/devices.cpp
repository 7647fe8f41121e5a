// The list of devices that only some builds have.
#include "exec/devices.h"

namespace rlx {

std::vector<DeviceMaker>& extra_devices() {
  static std::vector<DeviceMaker> makers;
  return makers;
}

}  // namespace rlx
