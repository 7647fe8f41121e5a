// Who is at work in NVIDIA's libraries, which take themselves down when the process ends.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>

#include "core/error.h"
#include "cuda/of_process.h"

namespace rlx::cuda {

// Error(device) of what is not begun, as in "no kernel is compiled".
inline Error ending_error(const std::string& what) {
  Error error(ErrorKind::device, what + " any more: the process is ending");
  error.remedy = "join the threads that use rlx before the main thread ends";
  return error;
}

// Threads that the end of the process waits for, until it lets none begin any more.
class AtWork {
 public:
  // False when the process is ending.
  bool begin() {
    const std::lock_guard lock(mutex_);
    count_ += !ended_;
    return !ended_;
  }
  void end() {
    const std::lock_guard lock(mutex_);
    if (--count_ == 0) none_.notify_all();
  }
  bool ended() {
    const std::lock_guard lock(mutex_);
    return ended_;
  }
  // Returns when none is left. The caller must not hold Python's lock.
  void rest() {
    std::unique_lock lock(mutex_);
    ended_ = true;
    none_.wait(lock, [this] { return count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  int count_ = 0;
  bool ended_ = false;
};

inline AtWork& at_work() { return of_process<AtWork>(); }

// The calling thread while it lives; throws ending_error(what).
class Working {
 public:
  explicit Working(const std::string& what) {
    if (!at_work().begin()) throw ending_error(what);
  }
  ~Working() { at_work().end(); }
  Working(const Working&) = delete;
};

}  // namespace rlx::cuda
