// The emulator's driver: everything happens at once, or as on a card; a captured graph is a list of
// what to repeat.
#include "emu/driver.h"

#include <dlfcn.h>

#include <cstring>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "core/error.h"
#include "emu/card.h"
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

struct Queue;

struct Capture {
  std::shared_ptr<Work> work = std::make_shared<Work>();
  std::vector<Queue*> joined;  // none when it is over
};
struct Queue {  // a stream
  std::shared_ptr<Line> line;         // of a card
  std::shared_ptr<Capture> captured;  // while capturing
  void join(std::shared_ptr<Capture> capture) {
    captured = std::move(capture);
    captured->joined.push_back(this);
  }
};
struct Mark {  // an event
  std::shared_ptr<Line> line;
  size_t place = 0;
  std::shared_ptr<Capture> captured;
};
using Repeated = std::shared_ptr<Work>;  // a graph

template <class Handle, class T>
Handle handle(T* object) {
  return reinterpret_cast<Handle>(object);
}

class EmuDriver final : public cuda::Driver {
 public:
  EmuDriver(FiberOrder order, bool apart)
      : order_(order), card_(apart ? std::make_unique<Card>() : nullptr),
        legacy_{card_ ? card_->make_line() : nullptr, nullptr} {
    info_.name = "emulator";
    info_.capability = 80;
    info_.multiprocessors = 4;
    info_.shared_per_block = 99 << 10;
    info_.threads_per_multiprocessor = 1024;
    info_.l2_bytes = 1 << 20;
    info_.memory_bytes = size_t(1) << 34;
  }

  const cuda::DeviceInfo& info() const override { return info_; }
  bool host_memory() const override { return !card_; }
  cuda::Current make_current() override { return cuda::Current(true); }
  cuda::Current make_current_quietly() noexcept override { return cuda::Current(true); }
  void synchronize_all() override {
    if (card_) card_->finish();
  }

  Module load(std::span<const std::byte> image) override {
    const char* path = reinterpret_cast<const char*>(image.data());
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) throw Error(ErrorKind::internal, std::string("dlopen: ") + dlerror());
    auto launch = reinterpret_cast<LaunchFunction>(dlsym(library, "rlx_emu_launch"));
    return handle<Module>(new Loaded{library, launch});
  }
  void unload(Module module) noexcept override {
    rest();
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
    return card_ ? card_->allocate(bytes) : allocate_host(bytes);
  }
  void free(void* memory) noexcept override {
    rest();
    card_ ? card_->free(memory) : std::free(memory);
  }
  void* allocate_host(size_t bytes) override {
    return std::aligned_alloc(256, (bytes + 256) / 256 * 256);
  }
  void free_host(void* memory) noexcept override {
    rest();
    std::free(memory);
  }
  void copy(void* to, const void* from, size_t bytes, Stream stream) override {
    submit(stream, [=] { std::memmove(to, from, bytes); });
  }
  void copy_in(void* to, const void* from, size_t bytes, Stream stream) override {
    copy(to, from, bytes, stream);
  }
  void fill(void* to, uint8_t value, size_t bytes, Stream stream) override {
    submit(stream, [=] { std::memset(to, value, bytes); });
  }
  bool on_device(const void* memory) override { return !card_ || card_->holds(memory); }
  size_t granularity() override { return 2 << 20; }
  void* reserve(size_t bytes) override {
    if (!card_) throw Error(ErrorKind::internal, "the host's memory is an arena of the host");
    return card_->reserve(bytes);
  }
  void map(void* at, size_t bytes) override { card_->map(at, bytes); }
  void unmap(void* at, size_t bytes) noexcept override {
    rest();
    card_->unmap(at, bytes);
  }
  void unreserve(void* at, size_t bytes) noexcept override { card_->unreserve(at, bytes); }

  Stream make_stream() override {
    return handle<Stream>(new Queue{card_ ? card_->make_line() : nullptr, nullptr});
  }
  void free(Stream stream) noexcept override {
    rest();
    delete queue_of(stream);
  }
  void synchronize(Stream stream) override {
    if (card_) card_->finish(*queue_of(stream)->line, SIZE_MAX);
  }
  Event make_event(bool) override { return handle<Event>(new Mark); }
  void free(Event event) noexcept override { delete reinterpret_cast<Mark*>(event); }
  void record(Event event, Stream stream) override {
    const Queue* queue = queue_of(stream);
    *reinterpret_cast<Mark*>(event) = {
        queue->line, card_ ? card_->place_in(*queue->line) : 0, queue->captured};
  }
  // A stream that waits for one that is being captured is captured too.
  void wait(Stream stream, Event event) override {
    Queue* queue = queue_of(stream);
    const Mark& mark = *reinterpret_cast<Mark*>(event);
    if (mark.captured && mark.captured->joined.empty()) {
      throw Error(ErrorKind::device, "an event of a capture that is over");
    }
    if (mark.captured && !queue->captured) queue->join(mark.captured);
    if (mark.captured || !mark.line || mark.line == queue->line) return;
    card_->wait(*queue->line, mark.line, mark.place);
  }
  void synchronize(Event event) override {
    const Mark& mark = *reinterpret_cast<Mark*>(event);
    if (mark.line) card_->finish(*mark.line, mark.place);
  }
  double milliseconds(Event, Event) override { return 0; }

  void begin_capture(Stream stream) override {
    queue_of(stream)->join(std::make_shared<Capture>());
  }
  Graph end_capture(Stream stream) override {
    auto* made = new Repeated(queue_of(stream)->captured->work);
    abandon_capture(stream);
    return handle<Graph>(made);
  }
  void abandon_capture(Stream stream) noexcept override {
    const std::shared_ptr<Capture> capture = queue_of(stream)->captured;
    for (Queue* each : std::exchange(capture->joined, {})) each->captured = nullptr;
  }
  void launch(Graph graph, Stream stream) override {
    submit(stream, [work = *reinterpret_cast<Repeated*>(graph)] {
      for (const auto& each : *work) each();
    });
  }
  void free(Graph graph) noexcept override { delete reinterpret_cast<Repeated*>(graph); }
  bool is_captured(Stream) override { return false; }

 private:
  Queue* queue_of(Stream stream) {
    const bool is_default = reinterpret_cast<uintptr_t>(stream) < 16;
    return is_default ? &legacy_ : reinterpret_cast<Queue*>(stream);
  }
  // What is freed may be in use still.
  void rest() noexcept {
    try {
      synchronize_all();
    } catch (const Error&) {  // is told to all that wait from now on
    }
  }

  void check(const LaunchShape& s) const {
    const uint64_t threads = uint64_t(s.block.x) * s.block.y * s.block.z;
    const bool bad = s.grid.x == 0 || s.grid.y == 0 || s.grid.z == 0 || s.grid.x > 0x7fffffffu ||
                     s.grid.y > 65535 || s.grid.z > 65535 || threads == 0 || threads > 1024 ||
                     s.block.z > 64 || int(s.shared_bytes) > info_.shared_per_block;
    if (bad) throw Error(ErrorKind::internal, "a launch is outside the limits of the device");
  }

  void submit(Stream stream, std::function<void()> work) {
    const Queue* queue = queue_of(stream);
    if (queue->captured) queue->captured->work->push_back(std::move(work));
    else if (card_) card_->put(*queue->line, std::move(work));
    else work();
  }

  FiberOrder order_;
  const std::unique_ptr<Card> card_;  // null: everything happens at once, on the host's memory
  Queue legacy_;
  cuda::DeviceInfo info_;
};

}  // namespace

std::unique_ptr<cuda::Driver> make_driver(FiberOrder order, bool apart) {
  return std::make_unique<EmuDriver>(order, apart);
}

}  // namespace rlx::emu
