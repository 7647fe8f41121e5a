// Device memory in blocks that are used again: what runs return, stage and keep between runs.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "cuda/driver.h"

namespace rlx::cuda {

struct PoolStatistics {
  size_t used = 0, kept = 0, most_used = 0;  // bytes in use, free but kept, and the peak of used
  int64_t driver_allocations = 0;
};

// Freed blocks wait for reuse up to a cap. A block may be reused while work that was put on some
// stream before it was freed still runs: users on several streams order themselves.
class MemoryPool : public std::enable_shared_from_this<MemoryPool> {
 public:
  MemoryPool(std::shared_ptr<Driver> driver, size_t cap) : driver_(std::move(driver)), cap_(cap) {}
  ~MemoryPool();
  std::shared_ptr<void> get(size_t bytes);
  void set_cap(size_t cap);                  // bytes of free blocks that are kept
  void empty();                              // gives what is kept back to the driver
  PoolStatistics statistics() const;

 private:
  void put_back(void* memory, size_t size) noexcept;
  void trim(size_t most) noexcept;
  void* carve(size_t size);

  const std::shared_ptr<Driver> driver_;
  mutable std::mutex mutex_;
  size_t cap_;
  std::multimap<size_t, void*> free_;        // by size; large blocks only
  std::map<size_t, std::vector<void*>> small_;
  std::vector<void*> slabs_;                 // that small blocks are cut from
  size_t slab_left_ = 0;
  std::byte* slab_at_ = nullptr;
  PoolStatistics statistics_;
};

}  // namespace rlx::cuda
