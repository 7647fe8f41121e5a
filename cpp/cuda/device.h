// A GPU as a Device, and what is known of CUDA on this machine.
#pragma once

#include "backend.h"
#include "cuda/jit_nvrtc.h"
#include "cuda/memory_pool.h"
#include "cuda/select/select.h"

namespace rlx::cuda {

// What every Session on one GPU shares.
struct Gpu {
  std::shared_ptr<Driver> driver;
  std::shared_ptr<MemoryPool> pool;
  std::shared_ptr<Weights> weights;
  std::shared_ptr<Jit> jit;
  std::shared_ptr<Libraries> libraries;  // null in the emulator
};

// The GPU with what it shares, opened once; throws Error(device) naming what is missing.
std::shared_ptr<const Gpu> open_gpu(int ordinal);
// Takes RLX_CUDA_ARENA_POOL, where it was set anew, over to the pools that there are.
void bound_pools();
// Ends it for all Sessions that use it: their next call raises StaleHandleError.
void reset_gpu(int ordinal);
// Those opened so far.
std::vector<std::shared_ptr<const Gpu>> opened_gpus();

std::shared_ptr<Device> make_device(std::shared_ptr<const Gpu> gpu, DeviceOptions options);

}  // namespace rlx::cuda
