// Finds NVIDIA's libraries when they are first needed; each that is missing is a recorded reason.
//
// Order: already in the process (PyTorch's), pip's nvidia-* wheels, conda, the system's loader,
// CUDA_HOME. One CUDA major for the whole process: that of what is loaded already, else the newest
// that the driver supports and whose NVRTC is found. NVRTC and nvJitLink work without a driver.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <vector>

#include "cuda/api/library.h"

namespace rlx::cuda::api {

enum class Lib : uint8_t { driver, nvrtc, cublas_lt, cublas, cudnn, nvjitlink, nvtx };
constexpr size_t lib_count = 7;

struct SearchPaths {
  std::vector<std::string> site_packages;  // folders that hold an `nvidia` folder of wheels
  std::vector<std::string> prefixes;       // conda's and the like: PREFIX/lib
  std::vector<std::string> homes;          // CUDA_HOME: HOME/lib64, HOME/lib
};

class Loader {
 public:
  Loader();

  // Opens it on the first call.
  const Found& get(Lib lib);
  int cuda_major();                        // 12 or 13
  int driver_version();                    // 13000 for 13.0; 0 without one
  std::vector<Found> all();                // opens them all

 private:
  const Found& open(Lib lib);
  Found search(Lib lib, int major) const;
  Found open_driver();
  int choose_major();

  const SearchPaths paths_;
  std::recursive_mutex mutex_;
  std::array<Found, lib_count> found_;
  std::array<std::atomic<bool>, lib_count> opened_{};
  int major_ = -1, driver_version_ = 0;
};

// The process's loader; `set_search_paths` before its first use, later calls change nothing.
void set_search_paths(SearchPaths paths);
Loader& loader();

}  // namespace rlx::cuda::api
