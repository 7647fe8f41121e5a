// Weights as the device has them: once for all Sessions, in their own type.
//
// Worker threads pack and copy them while kernels compile and libraries start; whoever puts work on
// a stream that may read them calls settle() first. A copy that fails is the matter of the Sessions
// that asked for it; whoever asks later gets a new one.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "backend.h"
#include "core/fork.h"
#include "cuda/memory_pool.h"

namespace rlx::cuda {

class Weights {
 public:
  Weights(std::shared_ptr<Driver> driver, std::shared_ptr<MemoryPool> pool);
  ~Weights();

  // Writes part of a weight on the host: `bytes` of it from `offset` on, to `to`.
  using Fill = std::function<void(void* to, size_t offset, size_t bytes)>;

  // `user` is the Session's device: who else holds a copy decides whether it may be overwritten.
  std::shared_ptr<const void> upload(const void* user, const Constant& constant);
  // Another form of a constant, of `bytes`. `fill` is called on other threads, several at once, and
  // later: it must own what it reads, for which `constant` is kept alive. Each call's offset is a
  // multiple of `unit` bytes, and so is its size but for the last.
  std::shared_ptr<const void> pack(const void* user, const Constant& constant,
                                   const std::string& format, size_t bytes, size_t unit,
                                   const Fill& fill);
  // What pack() made already, or null.
  std::shared_ptr<const void> find(const void* user, const Constant& constant,
                                   const std::string& format, size_t bytes);
  bool only_of(const void* user, const Constant& constant);
  // Copies of `constant` become copies of `now`, where they are; the caller has seen to it that
  // nothing reads them. Packed forms are filled when pack() is called for `now`.
  void replace(const Constant& constant, const Constant& now);
  // Returns when all that was asked for is on the device; throws what went wrong with `user`'s.
  void settle(const void* user);
  // The Session is gone.
  void leave(const void* user);
  // In either direction; done when it returns.
  void copy(void* to, const void* from, size_t bytes);

 private:
  using Key = std::tuple<const void*, std::string>;
  static Key key_of(const Constant& constant, const std::string& format, size_t bytes) {
    return {constant.data, format + " " + std::to_string(bytes)};
  }
  struct Copy {
    std::shared_ptr<void> memory;
    std::shared_ptr<const void> owner;  // of the host's bytes: no other weight gets their address
    std::set<const void*> users;
    bool stale = false;                 // to be filled again
    std::exception_ptr failure = nullptr;  // why it does not hold the bytes
  };
  // A piece of a copy: all workers are at a big one whose form can be filled in pieces.
  struct Task {
    std::shared_ptr<Copy> copy;
    size_t offset, bytes;
    Fill fill;
  };
  class Worker;
  using Held = std::map<Key, std::weak_ptr<Copy>>;
  // Declared before a lock: the last to hold a copy may need Python's lock to drop it, which who
  // waits for ours may hold.
  using Copies = std::vector<std::shared_ptr<Copy>>;
  std::shared_ptr<const void> make(const void* user, const Constant& constant, size_t bytes,
                                   size_t unit, const Fill& fill, std::weak_ptr<Copy>& held);
  static std::shared_ptr<const void> address(const std::shared_ptr<Copy>& copy);
  // Those of one constant, in every format.
  Held::iterator first_of(const Constant& constant) {
    return held_.lower_bound(Key{constant.data, ""});
  }
  // Null where there is none, or one that failed.
  static std::shared_ptr<Copy> usable(const std::weak_ptr<Copy>& held);
  // All of them or, where no thread can copy them, an exception.
  void add(std::list<Task> tasks);
  bool start_worker();
  void work();
  void fail(std::span<const Task> tasks, const std::exception_ptr& failure);
  void finish(size_t tasks);
  void wait();

  const std::shared_ptr<Driver> driver_;
  const std::shared_ptr<MemoryPool> pool_;
  const Stream stream_;
  const unsigned most_;      // workers
  std::mutex mutex_;         // of the table and the copies in it
  Held held_;
  std::vector<std::weak_ptr<Copy>> failed_;
  std::atomic<bool> any_failed_{false};
  std::mutex tasks_mutex_;
  std::condition_variable settled_;
  std::list<Task> tasks_;
  const uint64_t born_ = fork_generation();  // a forked child has none of the workers
  unsigned workers_ = 0;
  std::atomic<size_t> pending_{0};
};

}  // namespace rlx::cuda
