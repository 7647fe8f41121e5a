// Lists the GPUs that the driver shows.
#include "cuda/api/driver.h"
#include "cuda/api/driver_table.h"
#include "cuda/api/forked.h"
#include "cuda/api/loader.h"

namespace rlx::cuda::api {

std::vector<DeviceSummary> list_devices() {
  if (!loader().get(Lib::driver).usable() || !claim_cuda()) return {};
  const DriverTable& cu = driver_table();
  int count = 0;
  if (cu.init(0) != 0 || cu.device_count(&count) != 0) return {};
  std::vector<DeviceSummary> devices;
  for (int i = 0; i < count; ++i) {
    DeviceId device = 0;
    char name[128] = "";
    size_t memory = 0;
    int major = 0, minor = 0;
    if (cu.device_get(&device, i) != 0) continue;
    cu.device_name(name, sizeof name, device);
    cu.device_memory(&memory, device);
    cu.device_attribute(&major, capability_major, device);
    cu.device_attribute(&minor, capability_minor, device);
    devices.push_back({i, name, major * 10 + minor, memory});
  }
  return devices;
}

}  // namespace rlx::cuda::api
