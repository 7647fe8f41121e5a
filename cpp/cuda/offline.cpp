// Answers what planning asks, and refuses to launch.
#include "cuda/offline.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>

#include "core/error.h"

namespace rlx::cuda {
namespace {

constexpr size_t granularity_bytes = size_t{2} << 20;

// Of a block, with opt-in: what a multiprocessor has, less the KiB that is kept.
int shared_kib(int capability) {
  struct Family {
    int first, kib;
  };
  // From each capability on.
  constexpr Family families[] = {{120, 99}, {90, 227}, {89, 99}, {87, 163}, {86, 99}, {80, 163},
                                 {75, 64},  {70, 96}};
  for (const Family& family : families) {
    if (capability >= family.first) return family.kib;
  }
  return 48;
}

DeviceInfo info_of(int capability) {
  DeviceInfo info;
  info.name = "compute capability " + std::to_string(capability);
  info.capability = capability;
  info.multiprocessors = 108;  // grids depend on them, kernels do not
  info.shared_per_block = shared_kib(capability) << 10;
  const bool many = capability == 70 || capability == 80 || (capability >= 90 && capability < 120);
  info.threads_per_multiprocessor = many ? 2048 : capability >= 80 ? 1536 : 1024;
  info.l2_bytes = size_t{40} << 20;
  // More than any GPU has, and little enough for the arenas of many in one address space.
  info.memory_bytes = size_t{1} << 40;
  return info;
}

class OfflineDriver final : public Driver {
 public:
  explicit OfflineDriver(int capability) : info_(info_of(capability)) {}
  ~OfflineDriver() override {
    for (const auto& [at, bytes] : reserved_) munmap(at, bytes);
  }

  const DeviceInfo& info() const override { return info_; }
  Current make_current() override { return Current(true); }
  Current make_current_quietly() noexcept override { return Current(true); }
  void synchronize_all() override {}

  Module load(std::span<const std::byte>) override { return reinterpret_cast<Module>(this); }
  void unload(Module) noexcept override {}
  Function function(Module, const std::string&) override {
    return reinterpret_cast<Function>(this);
  }
  void allow_shared(Function, uint32_t) override {}
  int blocks_per_multiprocessor(Function, uint32_t, uint32_t) override { return 2; }
  void launch(Function, const LaunchShape&, std::span<const std::byte>, Stream) override {
    throw Error(ErrorKind::device, "this device only compiles");
  }

  void* allocate(size_t bytes) override { return reserve(bytes); }
  void free(void* memory) noexcept override { release(memory); }
  void* allocate_host(size_t bytes) override { return std::malloc(bytes); }
  void free_host(void* memory) noexcept override { std::free(memory); }
  void copy(void*, const void*, size_t, Stream) override {}
  void copy_in(void*, const void*, size_t, Stream) override {}
  void fill(void*, uint8_t, size_t, Stream) override {}
  bool on_device(const void*) override { return false; }
  size_t granularity() override { return granularity_bytes; }
  void* reserve(size_t bytes) override {
    void* at = mmap(nullptr, std::max(bytes, size_t{1}), PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) throw Error(ErrorKind::memory_limit, "no addresses are left");
    const std::lock_guard lock(mutex_);
    reserved_[at] = std::max(bytes, size_t{1});
    return at;
  }
  void map(void*, size_t) override {}
  void unmap(void*, size_t) noexcept override {}
  void unreserve(void* at, size_t) noexcept override { release(at); }

  Stream make_stream() override { return reinterpret_cast<Stream>(this); }
  void free(Stream) noexcept override {}
  void synchronize(Stream) override {}
  Event make_event(bool) override { return reinterpret_cast<Event>(this); }
  void free(Event) noexcept override {}
  void record(Event, Stream) override {}
  void wait(Stream, Event) override {}
  void synchronize(Event) override {}
  double milliseconds(Event, Event) override { return 0; }

  void begin_capture(Stream) override {}
  Graph end_capture(Stream) override { return nullptr; }
  void abandon_capture(Stream) noexcept override {}
  void launch(Graph, Stream) override {}
  void free(Graph) noexcept override {}
  bool is_captured(Stream) override { return false; }

 private:
  void release(void* at) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = reserved_.find(at);
    if (found == reserved_.end()) return;
    munmap(at, found->second);
    reserved_.erase(found);
  }

  const DeviceInfo info_;
  std::mutex mutex_;
  std::map<void*, size_t> reserved_;
};

}  // namespace

std::shared_ptr<Driver> make_offline_driver(int capability) {
  return std::make_shared<OfflineDriver>(capability);
}

}  // namespace rlx::cuda
