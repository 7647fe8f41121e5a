// Weights as the device has them: once for all Sessions, in their own type.
#pragma once

#include <functional>
#include <map>
#include <mutex>

#include "backend.h"
#include "cuda/memory_pool.h"

namespace rlx::cuda {

class Weights {
 public:
  Weights(std::shared_ptr<Driver> driver, std::shared_ptr<MemoryPool> pool);
  ~Weights();

  std::shared_ptr<const void> upload(const Constant& constant);
  // Another form of a constant; `fill` writes its `bytes` on the host the first time.
  std::shared_ptr<const void> pack(const Constant& constant, const std::string& format,
                                   size_t bytes, const std::function<void(void*)>& fill);
  void copy_in(void* to, const void* from, size_t bytes);

 private:
  using Key = std::tuple<const void*, std::string>;
  std::shared_ptr<const void> make(const Constant& constant, size_t bytes, const void* from);

  const std::shared_ptr<Driver> driver_;
  const std::shared_ptr<MemoryPool> pool_;
  const Stream stream_;
  std::mutex mutex_;
  std::map<Key, std::weak_ptr<const void>> held_;
};

}  // namespace rlx::cuda
