// nvJitLink: links what NVRTC makes under -dlto. Needs no GPU.
#pragma once

#include <string>
#include <vector>

#include <cstddef>
#include <span>

namespace rlx::cuda::api {

struct Linked {
  std::vector<std::byte> image;  // a CUBIN, or PTX that ends with a zero
  std::string log;
};

class NvJitLink {
 public:
  // Throws Error(device) when it is missing, or older than `nvrtc` ("12.9"), whose output it then
  // could not read.
  static NvJitLink get(const std::string& nvrtc);

  const std::string& version() const { return version_; }
  // `options`: "-arch=sm_90", "-lto" ..., and "-ptx" where `to_ptx`. Throws Error(internal) with
  // the linker's log.
  Linked link(const std::string& name, std::span<const std::byte> lto,
              const std::vector<std::string>& options, bool to_ptx) const;

 private:
  NvJitLink() = default;
  std::string version_;
};

}  // namespace rlx::cuda::api
