// NVRTC: CUDA C++ text in, a CUBIN or PTX out. Needs no GPU.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cuda/jit.h"

namespace rlx::cuda::api {

struct Compiled {
  std::vector<std::byte> image;
  std::string log;
};

class Nvrtc {
 public:
  // Throws Error(device) when NVRTC cannot be used.
  static const Nvrtc& get();

  const std::string& version() const { return version_; }
  // "sm_90a" for a CUBIN of the device's own architecture; "compute_90" for PTX where this NVRTC
  // is older than the device.
  std::string architecture(int capability) const;
  // Throws Error(internal) with the compiler's log.
  Compiled compile(const std::string& name, const std::string& text,
                   const std::vector<NamedText>& headers,
                   const std::vector<std::string>& options) const;

 private:
  Nvrtc();
  struct Functions;
  std::shared_ptr<const Functions> functions_;
  std::string version_;
  std::vector<int> supported_;
};

}  // namespace rlx::cuda::api
