// Copies weights to the device, from several threads through pinned memory.
#include "cuda/weights.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "core/error.h"

namespace rlx::cuda {
namespace {

constexpr size_t staging_bytes = size_t{4} << 20;

}  // namespace

// A stream with two pinned buffers, filled by turns.
class Weights::Worker {
 public:
  explicit Worker(Driver& driver) : driver_(driver), stream_(driver.make_stream()) {}
  ~Worker() {
    for (Buffer& buffer : buffers_) {
      if (buffer.free) driver_.free(buffer.free);
      if (buffer.memory) driver_.free_host(buffer.memory);
    }
    driver_.free(stream_);
  }
  Worker(const Worker&) = delete;

  void run(const Task& task) {
    const void* from = task.from;
    if (task.fill) {
      if (scratch_bytes_ < task.bytes) {
        scratch_.reset(new std::byte[task.bytes]);
        scratch_bytes_ = task.bytes;
      }
      task.fill(scratch_.get());
      from = scratch_.get();
    }
    for (size_t done = 0; done < task.bytes; done += staging_bytes) {
      const size_t size = std::min(staging_bytes, task.bytes - done);
      Buffer& buffer = next(size);
      std::memcpy(buffer.memory, static_cast<const std::byte*>(from) + done, size);
      auto* to = static_cast<std::byte*>(const_cast<void*>(task.memory.get())) + done;
      driver_.copy(to, buffer.memory, size, stream_);
      driver_.record(buffer.free, stream_);
    }
  }
  void synchronize() { driver_.synchronize(stream_); }

 private:
  struct Buffer {
    void* memory = nullptr;
    size_t bytes = 0;
    Event free = nullptr;  // when the last copy out of it is done
  };

  Buffer& next(size_t bytes) {
    Buffer& buffer = buffers_[turn_ ^= 1];
    if (buffer.free) driver_.synchronize(buffer.free);
    if (!buffer.free) buffer.free = driver_.make_event(false);
    if (buffer.bytes < bytes) {
      if (buffer.memory) driver_.free_host(std::exchange(buffer.memory, nullptr));
      buffer.bytes = 0;
      // Pinning takes longer than copying: a worker that meets small weights only pins little.
      const size_t wanted = bytes <= staging_bytes / 16 ? staging_bytes / 16 : staging_bytes;
      buffer.memory = driver_.allocate_host(wanted);
      buffer.bytes = wanted;
    }
    return buffer;
  }

  Driver& driver_;
  const Stream stream_;
  Buffer buffers_[2];
  unsigned turn_ = 0;
  std::unique_ptr<std::byte[]> scratch_;
  size_t scratch_bytes_ = 0;
};

Weights::Weights(std::shared_ptr<Driver> driver, std::shared_ptr<MemoryPool> pool)
    : driver_(std::move(driver)), pool_(std::move(pool)), stream_(driver_->make_stream()),
      most_(std::clamp(std::thread::hardware_concurrency() / 2, 1u, 8u)) {}

Weights::~Weights() {
  std::unique_lock lock(tasks_mutex_);
  settled_.wait(lock, [&] { return workers_ == 0; });
  driver_->free(stream_);
}

void Weights::copy_in(void* to, const void* from, size_t bytes) {
  driver_->copy(to, from, bytes, stream_);
  driver_->synchronize(stream_);
}

// The copy keeps the host's bytes alive, so that no other weight can get their address.
std::shared_ptr<const void> Weights::make(const Constant& constant, size_t bytes,
                                          std::function<void(void*)> fill) {
  const std::shared_ptr<void> memory = pool_->get(bytes);
  const auto both = std::make_shared<std::pair<std::shared_ptr<void>, std::shared_ptr<const void>>>(
      memory, constant.owner);
  const std::shared_ptr<const void> made(both, memory.get());
  if (bytes) add({made, bytes, constant.data, std::move(fill)});
  return made;
}

std::shared_ptr<const void> Weights::upload(const Constant& constant) {
  const std::lock_guard lock(mutex_);
  auto& held = held_[Key{constant.data, ""}];
  if (auto found = held.lock()) return found;
  const auto made = make(constant, constant.bytes, nullptr);
  held = made;
  return made;
}

std::shared_ptr<const void> Weights::pack(const Constant& constant, const std::string& format,
                                          size_t bytes, std::function<void(void*)> fill) {
  const std::lock_guard lock(mutex_);
  auto& held = held_[key_of(constant, format, bytes)];
  if (auto found = held.lock()) return found;
  const auto made = make(constant, bytes, std::move(fill));
  held = made;
  return made;
}

std::shared_ptr<const void> Weights::find(const Constant& constant, const std::string& format,
                                          size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = held_.find(key_of(constant, format, bytes));
  return found == held_.end() ? nullptr : found->second.lock();
}

void Weights::add(Task task) {
  const std::lock_guard lock(tasks_mutex_);
  ++pending_;
  tasks_.push_back(std::move(task));
  if (workers_ == most_) return;
  ++workers_;
  std::thread([this] { work(); }).detach();
}

// Copies are waited for when nothing is left to begin, so that packing goes on beside them.
void Weights::work() {
  size_t begun = 0;
  std::exception_ptr failure;
  std::optional<Worker> worker;
  while (true) {
    Task task;
    {
      std::unique_lock lock(tasks_mutex_);
      if (tasks_.empty() && begun == 0) {
        worker.reset();
        --workers_;
        settled_.notify_all();
        return;
      }
      if (!tasks_.empty()) {
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
    }
    try {
      if (!worker) worker.emplace(*driver_);
      if (task.memory) worker->run(task);
      else worker->synchronize();
    } catch (const std::exception&) {
      failure = std::current_exception();
    }
    if (task.memory) ++begun;
    else finish(std::exchange(begun, 0), std::exchange(failure, nullptr));
  }
}

void Weights::finish(size_t tasks, std::exception_ptr failure) {
  const std::lock_guard lock(tasks_mutex_);
  if (failure) failure_ = failure, failed_ = true;
  pending_ -= tasks;
  settled_.notify_all();
}

void Weights::settle() {
  if (pending_ == 0 && !failed_) return;
  std::unique_lock lock(tasks_mutex_);
  settled_.wait(lock, [&] { return pending_ == 0; });
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace rlx::cuda
