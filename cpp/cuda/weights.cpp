// Copies weights to the device, from several threads through pinned memory.
#include "cuda/weights.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <thread>
#include <utility>

#include "cuda/at_work.h"

namespace rlx::cuda {
namespace {

// The driver pins 2 MiB in a millisecond, one thread at a time.
constexpr size_t staging_bytes = size_t{1} << 20;

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
    auto* to = static_cast<std::byte*>(task.copy->memory.get()) + task.offset;
    if (task.bytes <= staging_bytes) {
      send(to, task.bytes, [&](void* staging) { task.fill(staging, task.offset, task.bytes); });
      return;
    }
    if (scratch_bytes_ < task.bytes) {
      scratch_.reset(new std::byte[task.bytes]);
      scratch_bytes_ = task.bytes;
    }
    task.fill(scratch_.get(), task.offset, task.bytes);
    for (size_t done = 0; done < task.bytes; done += staging_bytes) {
      const size_t size = std::min(staging_bytes, task.bytes - done);
      send(to + done, size,
           [&](void* staging) { std::memcpy(staging, scratch_.get() + done, size); });
    }
  }
  void synchronize() { driver_.synchronize(stream_); }

 private:
  struct Buffer {
    void* memory = nullptr;
    size_t bytes = 0;
    Event free = nullptr;  // when the last copy out of it is done
  };

  template <class Write>
  void send(void* to, size_t bytes, Write write) {
    Buffer& buffer = next(bytes);
    write(buffer.memory);
    driver_.copy_in(to, buffer.memory, bytes, stream_);
    driver_.record(buffer.free, stream_);
  }

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
  if (fork_generation() == born_) {
    std::unique_lock lock(tasks_mutex_);
    settled_.wait(lock, [&] { return workers_ == 0; });
  }
  driver_->free(stream_);
}

void Weights::copy(void* to, const void* from, size_t bytes) {
  driver_->copy(to, from, bytes, stream_);
  driver_->synchronize(stream_);
}

std::shared_ptr<const void> Weights::address(const std::shared_ptr<Copy>& copy) {
  return {copy, copy->memory.get()};
}

std::shared_ptr<const void> Weights::make(const void* user, const Constant& constant, size_t bytes,
                                          size_t unit, const Fill& fill,
                                          std::weak_ptr<Copy>& held) {
  auto copy = std::make_shared<Copy>(Copy{.memory = pool_->get(bytes), .owner = constant.owner,
                                          .users = {user}});
  held = copy;
  if (bytes == 0) return address(copy);
  try {
    std::list<Task> pieces;
    const size_t piece = std::max(unit, staging_bytes / unit * unit);
    for (size_t offset = 0; offset < bytes; offset += piece) {
      pieces.push_back({copy, offset, std::min(piece, bytes - offset), fill});
    }
    add(std::move(pieces));
  } catch (const std::exception&) {
    copy->failure = std::current_exception();
    failed_.push_back(copy);
    any_failed_ = true;
  }
  return address(copy);
}

std::shared_ptr<Weights::Copy> Weights::usable(const std::weak_ptr<Copy>& held) {
  auto found = held.lock();
  return found && !found->failure ? found : nullptr;
}

std::shared_ptr<const void> Weights::upload(const void* user, const Constant& constant) {
  const std::lock_guard lock(mutex_);
  auto& held = held_[Key{constant.data, ""}];
  if (const auto found = usable(held)) {
    found->users.insert(user);
    return address(found);
  }
  const auto fill = [from = static_cast<const std::byte*>(constant.data)](
                        void* to, size_t offset, size_t bytes) {
    std::memcpy(to, from + offset, bytes);
  };
  return make(user, constant, constant.bytes, 1, fill, held);
}

std::shared_ptr<const void> Weights::pack(const void* user, const Constant& constant,
                                          const std::string& format, size_t bytes, size_t unit,
                                          const Fill& fill) {
  const std::lock_guard lock(mutex_);
  auto& held = held_[key_of(constant, format, bytes)];
  const auto found = usable(held);
  if (!found) return make(user, constant, bytes, unit, fill, held);
  found->users.insert(user);
  if (std::exchange(found->stale, false)) {
    const std::unique_ptr<std::byte[]> host(new std::byte[bytes]);
    fill(host.get(), 0, bytes);
    copy(found->memory.get(), host.get(), bytes);
  }
  return address(found);
}

std::shared_ptr<const void> Weights::find(const void* user, const Constant& constant,
                                          const std::string& format, size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto at = held_.find(key_of(constant, format, bytes));
  const auto found = at == held_.end() ? nullptr : usable(at->second);
  if (!found || found->stale) return nullptr;
  found->users.insert(user);
  return address(found);
}

bool Weights::only_of(const void* user, const Constant& constant) {
  Copies seen;
  const std::lock_guard lock(mutex_);
  for (auto it = first_of(constant); it != held_.end(); ++it) {
    if (std::get<0>(it->first) != constant.data) break;
    const auto copy = seen.emplace_back(it->second.lock());
    if (copy && (copy->users.size() != 1 || !copy->users.contains(user))) return false;
  }
  return true;
}

void Weights::replace(const Constant& constant, const Constant& now) {
  wait();
  const std::lock_guard lock(mutex_);
  driver_->synchronize_all();
  for (auto it = first_of(constant); it != held_.end();) {
    if (std::get<0>(it->first) != constant.data) break;
    auto entry = held_.extract(it++);
    const auto copy = entry.mapped().lock();
    if (!copy) continue;
    copy->owner = now.owner;
    copy->stale = !std::get<1>(entry.key()).empty();
    if (!copy->stale && now.bytes) this->copy(copy->memory.get(), now.data, now.bytes);
    copy->failure = nullptr;
    std::get<0>(entry.key()) = now.data;
    held_.insert(std::move(entry));
  }
}

void Weights::add(std::list<Task> tasks) {
  const std::lock_guard lock(tasks_mutex_);
  for (size_t i = 0; i < tasks.size() && workers_ < most_ && start_worker(); ++i) {
  }
  if (at_work().ended()) throw ending_error("no weight is copied");
  if (!workers_) throw Error(ErrorKind::device, "no thread that copies weights can be started");
  pending_ += tasks.size();
  tasks_.splice(tasks_.end(), tasks);
}

bool Weights::start_worker() {
  if (!at_work().begin()) return false;
  try {
    std::thread([this] {
      work();
      at_work().end();  // the Weights may be gone
    }).detach();
  } catch (const std::system_error&) {
    at_work().end();
    return false;
  }
  ++workers_;
  return true;
}

// Copies are waited for when nothing is left to begin, so that packing goes on beside them. Until
// then memory is held that its user may have dropped: a copy is still going there. What a task
// held is dropped by a thread that nobody waits for any more: it may need Python's lock, which
// who waits may hold.
void Weights::work() {
  std::vector<Task> begun, done;
  std::optional<Worker> worker;
  while (true) {
    Task task;
    {
      std::unique_lock lock(tasks_mutex_);
      if (tasks_.empty() && begun.empty()) {
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
    const bool more = task.copy != nullptr;
    const size_t first = more ? begun.size() : 0;  // of those that fail with it
    if (more) begun.push_back(std::move(task));
    try {
      if (!worker) worker.emplace(*driver_);
      if (more) worker->run(begun.back());
      else worker->synchronize();
    } catch (const std::exception&) {
      fail(std::span(begun).subspan(first), std::current_exception());
    }
    if (more) continue;
    const size_t count = begun.size();
    std::ranges::move(begun, std::back_inserter(done));
    begun.clear();
    finish(count);
  }
}

void Weights::fail(std::span<const Task> tasks, const std::exception_ptr& failure) {
  const std::lock_guard lock(mutex_);
  for (const Task& task : tasks) {
    if (task.copy->failure) continue;  // another piece of it
    task.copy->failure = failure;
    failed_.push_back(task.copy);
  }
  any_failed_ = true;
}

void Weights::finish(size_t tasks) {
  const std::lock_guard lock(tasks_mutex_);
  pending_ -= tasks;
  settled_.notify_all();
}

void Weights::wait() {
  if (pending_ == 0) return;
  (void)driver_->make_current();  // refused in a forked child, which has no thread to wait for
  std::unique_lock lock(tasks_mutex_);
  settled_.wait(lock, [&] { return pending_ == 0; });
}

void Weights::settle(const void* user) {
  wait();
  if (!any_failed_) return;
  Copies seen;
  const std::lock_guard lock(mutex_);
  std::erase_if(failed_, [&](const auto& each) {
    const auto copy = seen.emplace_back(each.lock());
    return !copy || !copy->failure;
  });
  any_failed_ = !failed_.empty();
  for (const auto& copy : seen) {
    if (copy && copy->failure && copy->users.contains(user)) {
      std::rethrow_exception(copy->failure);
    }
  }
}

void Weights::leave(const void* user) {
  if (fork_generation() != born_) return;  // a thread that the child lacks may hold the lock
  Copies seen;
  const std::lock_guard lock(mutex_);
  std::erase_if(held_, [&](const auto& entry) {
    const auto copy = seen.emplace_back(entry.second.lock());
    if (copy) copy->users.erase(user);
    return !copy;
  });
  for (const auto& failed : failed_) {
    if (const auto copy = seen.emplace_back(failed.lock())) copy->users.erase(user);
  }
}

}  // namespace rlx::cuda
