// NVRTC: CUDA C++ text in, a CUBIN or PTX out. Needs no GPU.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cuda/api/library.h"
#include "cuda/jit.h"

namespace rlx::cuda::api {

// What the options make of a source; the others are empty.
struct Compiled {
  std::vector<std::byte> cubin;       // for "sm_90" and its like
  std::vector<std::byte> ptx;         // ends with a zero
  std::vector<std::byte> lto;         // for "-dlto": what nvJitLink takes
  std::string log;
  std::vector<std::string> lowered;   // of the expressions asked for
};

class Nvrtc {
 public:
  // Throws Error(device) when NVRTC cannot be used.
  static const Nvrtc& get();

  const std::string& version() const { return version_; }
  // Compute capabilities, ascending.
  const std::vector<int>& supported() const { return supported_; }
  // "sm_90a" for a CUBIN of the device's own architecture; "compute_90" for PTX where this NVRTC
  // is older than the device.
  std::string architecture(int capability) const;
  // `expressions` name kernels as C++ does ("f<float>"): they are instantiated, and the names that
  // their symbols have are told. Throws Error(internal) with the compiler's log.
  Compiled compile(const std::string& name, const std::string& text,
                   const std::vector<NamedText>& headers,
                   const std::vector<std::string>& options,
                   const std::vector<std::string>& expressions = {}) const;

 private:
  explicit Nvrtc(const Found& library);
  struct Functions;
  std::shared_ptr<const Functions> functions_;
  std::string version_;
  std::vector<int> supported_;
};

}  // namespace rlx::cuda::api
