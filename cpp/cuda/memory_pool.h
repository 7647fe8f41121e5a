// Device memory in blocks that are used again: what runs return, stage and keep between runs.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/fork.h"
#include "cuda/driver.h"

namespace rlx::cuda {

struct PoolStatistics {
  size_t used = 0, kept = 0, most_used = 0;  // bytes in use, free but kept, and the peak of used
  int64_t driver_allocations = 0;
};

// Freed blocks wait for reuse up to a cap. Work that was put on a stream may still use a block when
// it is freed, so it goes to work on that stream only, or to any when the GPU has been waited for.
class MemoryPool : public std::enable_shared_from_this<MemoryPool> {
 public:
  MemoryPool(std::shared_ptr<Driver> driver, size_t cap) : driver_(std::move(driver)), cap_(cap) {}
  ~MemoryPool();
  // Memory for work on `home`. Without: for any, and nothing uses it any more when it is freed.
  std::shared_ptr<void> get(size_t bytes, std::optional<Stream> home = {});
  // Work on `stream` uses a block of get()'s from now on; without: on streams that are not known.
  static void lend(const std::shared_ptr<void>& block, std::optional<Stream> stream = {});
  static bool is_lent(const std::shared_ptr<void>& block);
  // Nothing that was put on the stream goes on any more.
  void settle(Stream home) noexcept;
  void set_cap(size_t cap);                  // bytes of free blocks that are kept
  void empty();                              // gives what is kept back to the driver
  PoolStatistics statistics() const;

 private:
  struct Use {
    const std::optional<Stream> home;
    std::atomic<bool> lent{false};           // to others
  };
  struct Release {                           // the deleter of what get() gives
    std::shared_ptr<MemoryPool> pool;
    size_t size;
    std::shared_ptr<Use> use;
    void operator()(void* memory) const { pool->put_back(memory, size, *use); }
  };
  using Blocks = std::vector<void*>;         // the latest last
  struct Free {                              // of one size
    Blocks idle, lent;
    std::map<Stream, Blocks> homes;
    size_t unsettled() const;
  };

  void put_back(void* memory, size_t size, const Use& use) noexcept;
  void* reuse(size_t size, std::optional<Stream> home, std::unique_lock<std::mutex>& lock);
  bool settle_all(std::unique_lock<std::mutex>& lock) noexcept;
  void trim(size_t most) noexcept;
  void* carve(size_t size);

  const std::shared_ptr<Driver> driver_;
  const uint64_t born_ = fork_generation();
  mutable std::mutex mutex_;
  size_t cap_;
  std::map<size_t, Free> free_;
  std::vector<void*> slabs_;                 // that small blocks are cut from
  size_t slab_left_ = 0;
  std::byte* slab_at_ = nullptr;
  PoolStatistics statistics_;
};

}  // namespace rlx::cuda
