// The emulator's driver: everything happens at once; a captured graph is a list of what to repeat.
#include "emu/driver.h"

#include <dlfcn.h>

#include <cstring>
#include <functional>
#include <mutex>
#include <vector>

#include "core/error.h"
#include "cpp/emu/device/launch.h"

namespace rlx::emu {
namespace {

using cuda::Event;
using cuda::Extent3;
using cuda::Function;
using cuda::Graph;
using cuda::LaunchShape;
using cuda::Module;
using cuda::Stream;

using LaunchFunction = int (*)(const Launch*, char* message, int length);
using Work = std::vector<std::function<void()>>;

struct Loaded {
  void* library;
  LaunchFunction launch;
};

struct Queue {
  std::unique_ptr<Work> captured;  // while capturing
};

template <class Handle, class T>
Handle handle(T* object) {
  return reinterpret_cast<Handle>(object);
}

class EmuDriver final : public cuda::Driver {
 public:
  explicit EmuDriver(FiberOrder order) : order_(order) {
    info_.name = "emulator";
    info_.capability = 80;
    info_.multiprocessors = 4;
    info_.shared_per_block = 99 << 10;
    info_.threads_per_multiprocessor = 1024;
    info_.l2_bytes = 1 << 20;
    info_.memory_bytes = size_t(1) << 34;
  }

  const cuda::DeviceInfo& info() const override { return info_; }
  bool host_memory() const override { return true; }
  cuda::Current make_current() override { return cuda::Current(true); }
  cuda::Current make_current_quietly() noexcept override { return cuda::Current(true); }
  void synchronize_all() override {}

  Module load(std::span<const std::byte> image) override {
    const char* path = reinterpret_cast<const char*>(image.data());
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) throw Error(ErrorKind::internal, std::string("dlopen: ") + dlerror());
    auto launch = reinterpret_cast<LaunchFunction>(dlsym(library, "rlx_emu_launch"));
    return handle<Module>(new Loaded{library, launch});
  }
  void unload(Module module) noexcept override {
    auto* loaded = reinterpret_cast<Loaded*>(module);
    dlclose(loaded->library);
    delete loaded;
  }
  Function function(Module module, const std::string&) override {
    return reinterpret_cast<Function>(module);
  }
  void allow_shared(Function, uint32_t bytes) override {
    if (int(bytes) > info_.shared_per_block) {
      throw Error(ErrorKind::internal, "a kernel asks for too much shared memory");
    }
  }
  int blocks_per_multiprocessor(Function, uint32_t threads, uint32_t) override {
    return std::max(1, info_.threads_per_multiprocessor / int(threads));
  }

  void launch(Function function, const LaunchShape& shape, std::span<const std::byte> params,
              Stream stream) override {
    check(shape);
    std::vector<std::byte> copy(params.begin(), params.end());
    const auto run = reinterpret_cast<Loaded*>(function)->launch;
    const bool reverse = order_ == FiberOrder::descending;
    submit(stream, [run, shape, reverse, copy = std::move(copy)] {
      const Launch launch{{shape.grid.x, shape.grid.y, shape.grid.z},
                          {shape.block.x, shape.block.y, shape.block.z},
                          shape.shared_bytes, copy.data(), copy.size(), reverse};
      char message[256] = "";
      if (run(&launch, message, sizeof message) != 0) {
        throw Error(ErrorKind::internal, std::string("emulated kernel: ") + message);
      }
    });
  }

  void* allocate(size_t bytes) override {
    return std::aligned_alloc(256, (bytes + 256) / 256 * 256);
  }
  void free(void* memory) noexcept override { std::free(memory); }
  void* allocate_host(size_t bytes) override { return allocate(bytes); }
  void free_host(void* memory) noexcept override { std::free(memory); }
  void copy(void* to, const void* from, size_t bytes, Stream stream) override {
    submit(stream, [=] { std::memmove(to, from, bytes); });
  }
  void copy_in(void* to, const void* from, size_t bytes, Stream stream) override {
    copy(to, from, bytes, stream);
  }
  void fill(void* to, uint8_t value, size_t bytes, Stream stream) override {
    submit(stream, [=] { std::memset(to, value, bytes); });
  }
  bool on_device(const void*) override { return true; }
  size_t granularity() override { return 2 << 20; }
  void* reserve(size_t) override { throw no("virtual memory"); }
  void map(void*, size_t) override { throw no("virtual memory"); }
  void unmap(void*, size_t) noexcept override {}
  void unreserve(void*, size_t) noexcept override {}

  Stream make_stream() override { return handle<Stream>(new Queue); }
  void free(Stream stream) noexcept override { delete reinterpret_cast<Queue*>(stream); }
  void synchronize(Stream) override {}
  Event make_event(bool) override { return handle<Event>(new int(0)); }
  void free(Event event) noexcept override { delete reinterpret_cast<int*>(event); }
  void record(Event, Stream) override {}
  void wait(Stream, Event) override {}
  void synchronize(Event) override {}
  double milliseconds(Event, Event) override { return 0; }

  void begin_capture(Stream stream) override {
    reinterpret_cast<Queue*>(stream)->captured = std::make_unique<Work>();
  }
  Graph end_capture(Stream stream) override {
    return handle<Graph>(reinterpret_cast<Queue*>(stream)->captured.release());
  }
  void abandon_capture(Stream stream) noexcept override {
    reinterpret_cast<Queue*>(stream)->captured.reset();
  }
  void launch(Graph graph, Stream) override {
    for (const auto& work : *reinterpret_cast<Work*>(graph)) work();
  }
  void free(Graph graph) noexcept override { delete reinterpret_cast<Work*>(graph); }
  bool is_captured(Stream) override { return false; }

 private:
  static Error no(const char* what) {
    return Error(ErrorKind::internal, std::string("the emulator has no ") + what);
  }

  void check(const LaunchShape& s) const {
    const uint64_t threads = uint64_t(s.block.x) * s.block.y * s.block.z;
    const bool bad = s.grid.x == 0 || s.grid.y == 0 || s.grid.z == 0 || s.grid.x > 0x7fffffffu ||
                     s.grid.y > 65535 || s.grid.z > 65535 || threads == 0 || threads > 1024 ||
                     s.block.z > 64 || int(s.shared_bytes) > info_.shared_per_block;
    if (bad) throw Error(ErrorKind::internal, "a launch is outside the limits of the device");
  }

  void submit(Stream stream, std::function<void()> work) {
    auto* queue = reinterpret_cast<Queue*>(stream);
    if (queue && queue->captured) queue->captured->push_back(std::move(work));
    else work();
  }

  FiberOrder order_;
  cuda::DeviceInfo info_;
};

}  // namespace

std::unique_ptr<cuda::Driver> make_driver(FiberOrder order) {
  return std::make_unique<EmuDriver>(order);
}

}  // namespace rlx::emu
