// A launch of a user's kernel, and what must live until the GPU no longer needs it.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <vector>

#include "core/error.h"
#include "cuda/api/driver.h"

namespace rlx::cuda {

class Flight {
 public:
  Flight(std::shared_ptr<api::GpuDriver> driver, std::string name,
         std::vector<std::shared_ptr<void>> owners);
  ~Flight();
  Flight(const Flight&) = delete;

  // Puts the launch on the stream. Its owners live until it has ended; on a stream that is being
  // captured, which runs nothing, as long as the graph or one that is made of it.
  static std::shared_ptr<Flight> begin(std::shared_ptr<Flight> flight, Stream stream,
                                       const std::function<void()>& launch);

  // Both throw what the GPU reports, with the kernel's name; Error(input) for a captured launch,
  // which has no end of its own.
  bool done();
  void synchronize();
  // Over: it has ended, or the GPU is lost. Unknown: it was not recorded, or cannot be asked.
  enum class State { going, over, unknown };
  State state() noexcept;

 private:
  void capture(Stream stream);
  void record(Stream stream);  // all that was put there until now belongs to it
  void check_not_captured() const;
  void finish();

  const std::shared_ptr<api::GpuDriver> driver_;
  const std::string name_;
  Event event_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<void>> owners_;
  bool captured_ = false;
  std::atomic<bool> launched_{false}, recorded_{false}, finished_{false};
};

// Lets go of the operands of launches that have ended.
void sweep_flights() noexcept;

// The same error with the kernel's name.
Error of_kernel(const Error& error, const std::string& name);

}  // namespace rlx::cuda
