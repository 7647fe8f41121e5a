// A kernel of a user on one GPU: its module there, and its launches.
#pragma once

#include "cuda/flight.h"
#include "cuda/user_program.h"

namespace rlx::cuda {

struct KernelUsage {
  int registers = 0, shared_bytes = 0, local_bytes = 0;  // of a thread, a block, a thread
  int max_threads = 0;                                   // of a block
};

class UserKernel {
 public:
  // Loads the program, unless it is there already. Throws Error(device) where that fails.
  UserKernel(UserProgramPtr program, const std::string& symbol, std::string name, int ordinal);

  const std::string& name() const { return name_; }
  const KernelUsage& usage() const { return usage_; }
  int ordinal() const { return driver_->info().ordinal; }
  int generation() const { return driver_->generation(); }
  const Driver& driver() const { return *driver_; }
  // Throws Error(stale_handle) after a reset.
  Current make_current() const { return driver_->make_current(); }
  // Throws Error(input) for extents that the GPU does not take.
  void check(const LaunchShape& shape) const;
  // `parameters` point to values of the kernel's types; `owners` live as a Flight's.
  std::shared_ptr<Flight> launch(const LaunchShape& shape, std::span<void* const> parameters,
                                 Stream stream, std::vector<std::shared_ptr<void>> owners) const;

 private:
  const std::string name_;
  const std::shared_ptr<api::GpuDriver> driver_;
  std::shared_ptr<void> module_;
  Function function_ = nullptr;
  KernelUsage usage_;
};

}  // namespace rlx::cuda
