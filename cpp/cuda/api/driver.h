// The Driver of a real GPU.
#pragma once

#include <vector>

#include "cuda/driver.h"

namespace rlx::cuda::api {

struct DeviceSummary {
  int ordinal;
  std::string name;
  int capability;
  size_t memory_bytes;
};

// The GPUs that the driver shows; none without a usable driver.
std::vector<DeviceSummary> list_devices();

// The driver on GPU `ordinal`, one for the process; throws Error(device) saying what is missing.
// It retains the primary context, which libraries and PyTorch share.
std::shared_ptr<Driver> open_driver(int ordinal);

// Destroys the GPU's primary context, with all that anybody in the process has in it. The driver
// that was open is stale from then on; throws Error(device) where CUDA does not permit it.
void reset_driver(int ordinal);

}  // namespace rlx::cuda::api
