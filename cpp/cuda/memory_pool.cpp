// Small blocks are cut from slabs by powers of two, large ones are whole allocations.
#include "cuda/memory_pool.h"

#include <algorithm>
#include <bit>

#include "core/error.h"

namespace rlx::cuda {
namespace {

constexpr size_t slab_bytes = size_t{2} << 20, largest_small = size_t{256} << 10, least = 256;
// Blocks of one size that wait for work elsewhere while others are allocated. Two of any size, so
// that two streams in turns need not wait for each other.
constexpr size_t least_waiting = 2, most_waiting = 8, most_waiting_bytes = size_t{256} << 20;

size_t rounded(size_t bytes) {
  if (bytes <= largest_small) return std::bit_ceil(std::max(bytes, least));
  return (bytes + slab_bytes - 1) / slab_bytes * slab_bytes;
}

}  // namespace

MemoryPool::~MemoryPool() {
  trim(0);
  for (void* slab : slabs_) driver_->free(slab);
}

std::shared_ptr<void> MemoryPool::get(size_t bytes, std::optional<Stream> home) {
  const size_t size = rounded(bytes);
  auto use = std::make_shared<Use>(home);
  void* memory = nullptr;
  {
    std::unique_lock lock(mutex_);
    memory = reuse(size, home, lock);
    if (memory) {
      statistics_.kept -= size;
    } else if (size <= largest_small) {
      memory = carve(size);
    } else {
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
  return {memory, Release{shared_from_this(), size, std::move(use)}};
}

void MemoryPool::lend(const std::shared_ptr<void>& block, std::optional<Stream> stream) {
  const auto* release = std::get_deleter<Release>(block);
  if (release && !(stream && stream == release->use->home)) release->use->lent = true;
}

bool MemoryPool::is_lent(const std::shared_ptr<void>& block) {
  const auto* release = std::get_deleter<Release>(block);
  return !release || release->use->lent;
}

size_t MemoryPool::Free::unsettled() const {
  size_t count = lent.size();
  for (const auto& [stream, blocks] : homes) count += blocks.size();
  return count;
}

// The latest block: a caller that drops its result gets the same address again, at which the walk
// is recorded already. Few wait for work elsewhere before the GPU is waited for.
void* MemoryPool::reuse(size_t size, std::optional<Stream> home,
                        std::unique_lock<std::mutex>& lock) {
  const auto found = free_.find(size);
  if (found == free_.end()) return nullptr;
  Free& free = found->second;
  Blocks* from = &free.idle;
  const auto at_home = home ? free.homes.find(*home) : free.homes.end();
  if (at_home != free.homes.end()) from = &at_home->second;
  if (from->empty()) {
    const size_t waiting = free.unsettled();
    if (waiting < least_waiting ||
        (waiting < most_waiting && waiting * size < most_waiting_bytes) ||
        !settle_all(lock) || free.idle.empty()) {
      return nullptr;
    }
    from = &free.idle;
  }
  void* memory = from->back();
  from->pop_back();
  if (at_home != free.homes.end() && from->empty()) std::erase_if(free.homes, [](const auto& h) {
    return h.second.empty();
  });
  return memory;
}

// When the GPU has nothing to do, nothing uses what is free. Others give blocks back meanwhile.
bool MemoryPool::settle_all(std::unique_lock<std::mutex>& lock) noexcept {
  std::map<size_t, Blocks> waiting;
  for (auto& [size, free] : free_) {
    Blocks& blocks = waiting[size] = std::move(free.lent);
    for (const auto& [stream, at_home] : free.homes) {
      blocks.insert(blocks.end(), at_home.begin(), at_home.end());
    }
    free.lent.clear();
    free.homes.clear();
  }
  lock.unlock();
  bool settled = true;
  try {
    driver_->synchronize_all();
  } catch (const Error&) {
    settled = false;
  }
  lock.lock();
  for (const auto& [size, blocks] : waiting) {
    Blocks& to = settled ? free_[size].idle : free_[size].lent;
    to.insert(to.end(), blocks.begin(), blocks.end());
  }
  return settled;
}

void* MemoryPool::carve(size_t size) {
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

void MemoryPool::put_back(void* memory, size_t size, const Use& use) noexcept {
  if (fork_generation() != born_) return;  // a thread that the child lacks may hold the lock
  const std::lock_guard lock(mutex_);
  statistics_.used -= size;
  statistics_.kept += size;
  Free& free = free_[size];
  (use.lent ? free.lent : use.home ? free.homes[*use.home] : free.idle).push_back(memory);
  if (size > largest_small && statistics_.kept > cap_) trim(cap_);
}

// Large blocks go back, largest first, for which the driver waits until nothing uses them; slabs
// stay, since parts of them may be in use.
void MemoryPool::trim(size_t most) noexcept {
  const auto give_back = [&](size_t size, Blocks& blocks) {
    for (; !blocks.empty() && statistics_.kept > most; blocks.pop_back()) {
      driver_->free(blocks.back());
      statistics_.kept -= size;
    }
  };
  for (auto at = free_.rbegin(); at != free_.rend() && at->first > largest_small; ++at) {
    give_back(at->first, at->second.idle);
    give_back(at->first, at->second.lent);
    for (auto& [stream, blocks] : at->second.homes) give_back(at->first, blocks);
  }
}

void MemoryPool::settle(Stream home) noexcept {
  const std::lock_guard lock(mutex_);
  for (auto& [size, free] : free_) {
    const auto found = free.homes.find(home);
    if (found == free.homes.end()) continue;
    free.idle.insert(free.idle.end(), found->second.begin(), found->second.end());
    free.homes.erase(found);
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
