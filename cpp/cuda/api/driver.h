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

// cuInit, once in a process, where there is a driver. Throws Error(device) if it refuses, and in a
// forked child.
void initialise_driver();

// The GPUs that the driver shows; none without a usable driver.
std::vector<DeviceSummary> list_devices();

// What kernels of users need beyond what rlx's own do.
class GpuDriver : public Driver {
 public:
  // Parameters one by one, each copied before the call returns.
  virtual void launch_with(Function function, const LaunchShape& shape,
                           std::span<void* const> parameters, Stream stream) = 0;
  virtual int attribute_of(Function function, int which) = 0;  // function_... of types.h
  // The GPU in whose memory it lies; -1 where that is unknown, or where the host reads it too.
  virtual int ordinal_of(const void* memory) = 0;
  virtual bool passed(Event event) = 0;      // whether what was recorded has happened
  // Calls let_go(what) once: when the graph that is being captured and all that is made of it are
  // gone, on a thread that may not call CUDA; at once where this throws.
  virtual void keep_with_capture(Stream stream, void* what, void (*let_go)(void*)) = 0;
  virtual int generation() const = 0;        // how often this GPU had been reset when it was opened
};

// The driver on GPU `ordinal`, one for the process; throws Error(device) saying what is missing.
// It retains the primary context, which libraries and PyTorch share.
std::shared_ptr<GpuDriver> open_driver(int ordinal);

// Destroys the GPU's primary context, with all that anybody in the process has in it. The driver
// that was open is stale from then on; throws Error(device) where CUDA does not permit it.
void reset_driver(int ordinal);

}  // namespace rlx::cuda::api
