// Small blocks are cut from slabs by powers of two, large ones are whole allocations.
#include "cuda/memory_pool.h"

#include <algorithm>
#include <bit>

#include "core/error.h"

namespace rlx::cuda {
namespace {

constexpr size_t slab_bytes = size_t{2} << 20, largest_small = size_t{256} << 10, least = 256;

size_t rounded(size_t bytes) {
  if (bytes <= largest_small) return std::bit_ceil(std::max(bytes, least));
  return (bytes + slab_bytes - 1) / slab_bytes * slab_bytes;
}

}  // namespace

MemoryPool::~MemoryPool() {
  for (const auto& [size, memory] : free_) driver_->free(memory);
  for (void* slab : slabs_) driver_->free(slab);
}

std::shared_ptr<void> MemoryPool::get(size_t bytes) {
  const size_t size = rounded(bytes);
  void* memory = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (size <= largest_small) {
      memory = carve(size);
    } else {
      // The latest of its size: a caller that drops its result gets the same address again, at
      // which the walk is recorded already.
      const auto after = free_.upper_bound(size);
      if (after != free_.begin() && std::prev(after)->first == size) {
        const auto found = std::prev(after);
        memory = found->second;
        free_.erase(found);
        statistics_.kept -= size;
      }
    }
    if (!memory) {
      ++statistics_.driver_allocations;
      try {
        memory = driver_->allocate(size);
      } catch (const Error& error) {
        if (error.kind != ErrorKind::memory_limit) throw;
        trim(0);
        memory = driver_->allocate(size);
      }
    }
    statistics_.used += size;
    statistics_.most_used = std::max(statistics_.most_used, statistics_.used);
  }
  return {memory, [pool = shared_from_this(), size](void* p) { pool->put_back(p, size); }};
}

void* MemoryPool::carve(size_t size) {
  auto& list = small_[size];
  if (!list.empty()) {
    void* memory = list.back();
    list.pop_back();
    statistics_.kept -= size;
    return memory;
  }
  if (slab_left_ < size) {
    slab_at_ = static_cast<std::byte*>(driver_->allocate(slab_bytes));
    slabs_.push_back(slab_at_);
    slab_left_ = slab_bytes;
    ++statistics_.driver_allocations;
  }
  void* memory = slab_at_;
  slab_at_ += size;
  slab_left_ -= size;
  return memory;
}

void MemoryPool::put_back(void* memory, size_t size) noexcept {
  const std::lock_guard lock(mutex_);
  statistics_.used -= size;
  statistics_.kept += size;
  if (size <= largest_small) {
    small_[size].push_back(memory);
    return;
  }
  free_.emplace(size, memory);
  if (statistics_.kept > cap_) trim(cap_);
}

// Large blocks go back, largest first; slabs stay, since parts of them may be in use.
void MemoryPool::trim(size_t most) noexcept {
  while (statistics_.kept > most && !free_.empty()) {
    const auto last = std::prev(free_.end());
    driver_->free(last->second);
    statistics_.kept -= last->first;
    free_.erase(last);
  }
}

void MemoryPool::set_cap(size_t cap) {
  const std::lock_guard lock(mutex_);
  cap_ = cap;
  trim(cap);
}

void MemoryPool::empty() {
  const std::lock_guard lock(mutex_);
  trim(0);
}

PoolStatistics MemoryPool::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

}  // namespace rlx::cuda
