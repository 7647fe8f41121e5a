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
// Begins to open it on another thread, and NVRTC and cuBLASLt beside it. What fails is told to
// whoever opens it next.
void begin_gpu(int ordinal);
// Begins to make cuBLASLt (`half`: for products of half floats) and the region interpreter ready
// for a first run, and cuDNN where `dnn`.
void begin_libraries(int ordinal, bool half, bool dnn);
// Before the process ends, since its libraries then take themselves down: returns when no thread of
// ours opens, compiles or copies any more.
void rest_gpus();
// Ends it for all Sessions that use it: their next call raises StaleHandleError.
void reset_gpu(int ordinal);
// Those opened so far.
std::vector<std::shared_ptr<const Gpu>> opened_gpus();

std::shared_ptr<Device> make_device(std::shared_ptr<const Gpu> gpu, DeviceOptions options);
// The GPU behind a Device; null for a Device that is none.
const Gpu* gpu_of(const Device& device);

// A Device of this compute capability that only compiles: binding a program for it puts kernels
// into the folder. With `libraries` it is one that has cuBLASLt and cuDNN.
std::shared_ptr<Device> make_offline_device(int capability, bool libraries, std::string folder,
                                            DeviceOptions options);
// Until all that was asked of the device is compiled; throws what is wrong with a kernel. Nothing
// for a device without a compiler.
void finish_kernels(const Device& device);

}  // namespace rlx::cuda
