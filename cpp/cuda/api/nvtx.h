// Named ranges for NVIDIA's profilers, where NVTX is there; else nothing.
#pragma once

namespace rlx::cuda::api {

// One open range at a time, on the thread that uses it.
class Ranges {
 public:
  Ranges();
  // Ends the open range; begins one unless the name is null.
  void enter(const char* name);

 private:
  int (*push_)(const char*) = nullptr;
  int (*pop_)() = nullptr;
  bool open_ = false;
};

}  // namespace rlx::cuda::api
