// Why nothing made in a GPU's context can be used any more: told once, raised by all that follows.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "core/error.h"

namespace rlx::cuda::api {

class Loss {
 public:
  explicit operator bool() const { return lost_; }
  void tell(std::string why, std::string remedy) {
    const std::lock_guard lock(mutex_);
    if (lost_) return;  // what came first tells most
    why_ = std::move(why), remedy_ = std::move(remedy);
    lost_ = true;
  }
  // Throws Error(`kind`) once it has been told.
  void check(ErrorKind kind) const {
    if (!lost_) return;
    const std::lock_guard lock(mutex_);
    Error error(kind, why_);
    error.remedy = remedy_;
    throw error;
  }

 private:
  std::atomic<bool> lost_{false};
  mutable std::mutex mutex_;
  std::string why_, remedy_;
};

}  // namespace rlx::cuda::api
