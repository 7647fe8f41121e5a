// A kernel of a user on one GPU: its module there, and launches whose operands live until they end.
#pragma once

#include <atomic>
#include <mutex>

#include "cuda/api/driver.h"
#include "cuda/user_program.h"

namespace rlx::cuda {

// A launch that may be going on.
class Flight {
 public:
  Flight(std::shared_ptr<api::GpuDriver> driver, std::string name,
         std::vector<std::shared_ptr<void>> owners);
  ~Flight();
  Flight(const Flight&) = delete;

  void record(Stream stream);  // all that was put there until now belongs to it
  // Both throw what the GPU reports, with the kernel's name.
  bool done();
  void synchronize();
  // Over: it has ended, or the GPU is lost. Unknown: it was not recorded, or cannot be asked.
  enum class State { going, over, unknown };
  State state() noexcept;

 private:
  void finish();

  const std::shared_ptr<api::GpuDriver> driver_;
  const std::string name_;
  Event event_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<void>> owners_;
  std::atomic<bool> launched_{false}, recorded_{false}, finished_{false};
};

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
  void check_alive() const { driver_->make_current(); }
  // Throws Error(input) for extents that the GPU does not take.
  void check(const LaunchShape& shape) const;
  // `parameters` point to values of the kernel's types; `owners` live until the launch has ended.
  std::shared_ptr<Flight> launch(const LaunchShape& shape, std::span<void* const> parameters,
                                 Stream stream, std::vector<std::shared_ptr<void>> owners) const;

 private:
  const std::string name_;
  const std::shared_ptr<api::GpuDriver> driver_;
  std::shared_ptr<void> module_;
  Function function_ = nullptr;
  KernelUsage usage_;
};

// Lets go of the operands of launches that have ended.
void sweep_flights() noexcept;

}  // namespace rlx::cuda
