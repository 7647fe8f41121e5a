// The Jit of a real GPU: NVRTC on several threads, with a cache on disk.
#pragma once

#include <optional>

#include "cuda/jit.h"

namespace rlx::cuda {

struct JitStatistics {
  int64_t compiled = 0, read = 0, loaded = 0;  // by NVRTC, from disk, into the GPU
  double compile_seconds = 0, load_seconds = 0;
};

class NvrtcJit : public Jit {
 public:
  virtual JitStatistics statistics() const = 0;
};

// Throws Error(device) when NVRTC cannot be used.
// `folder` takes the images instead of the usual cache.
std::unique_ptr<NvrtcJit> make_jit(std::shared_ptr<Driver> driver,
                                   std::optional<std::string> folder = std::nullopt);

// Before the process ends: drops what none of the compilers has begun, and waits for the rest. Who
// asks for a kernel that was dropped, or for another one later, gets Error(device).
void rest_compilers();

// The image of a kernel for a device of `capability`, from disk or compiled; no GPU is needed.
std::vector<std::byte> compile_kernel(const KernelSpec& spec, int capability);

}  // namespace rlx::cuda
