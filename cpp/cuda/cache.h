// Compiled kernels and choices of libraries on disk, by the digest of all that they depend on.
//
// Safe between processes: a file is written under a temporary name and renamed, and holds its key
// and the digest of its contents, which are checked when it is read. A folder that cannot be used
// means no cache, said once. A folder keeps 1 GiB: the entries used longest ago are removed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/sha256.h"

namespace rlx::cuda {

// RLX_CUDA_PTX_CACHE ("off": none), else XDG_CACHE_HOME/rlx/kernels, else ~/.cache/rlx/kernels.
std::string cache_folder();

class DiskCache {
 public:
  // `kind` ends the names of its files: "cubin", "kernel" (of users), "plan" (of cuDNN), "algo" (of
  // cuBLASLt); see _ENDINGS of python/rlx/kernel_cache.py.
  explicit DiskCache(std::string folder, const char* kind = "cubin")
      : folder_(std::move(folder)), kind_(kind) {}
  std::optional<std::vector<std::byte>> read(const Digest& key) const;
  void write(const Digest& key, std::span<const std::byte> contents) const;

 private:
  std::string path(const Digest& key) const;
  std::string folder_;  // empty: no cache
  const char* kind_;
};

}  // namespace rlx::cuda
