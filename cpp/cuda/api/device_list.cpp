// Starts the driver and lists the GPUs that it shows.
#include "cuda/api/driver.h"
#include "cuda/api/driver_errors.h"
#include "cuda/api/driver_table.h"
#include "cuda/api/forked.h"
#include "cuda/api/loader.h"

namespace rlx::cuda::api {

void initialise_driver() {
  if (!claim_cuda()) throw forked_error();
  static const Result result = driver_table().init(0);
  check_start(result, "cuInit");
}

std::vector<DeviceSummary> list_devices() {
  if (!loader().get(Lib::driver).usable()) return {};
  try {
    initialise_driver();
  } catch (const Error&) {
    return {};
  }
  const DriverTable& cu = driver_table();
  int count = 0;
  if (cu.device_count(&count) != 0) return {};
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
