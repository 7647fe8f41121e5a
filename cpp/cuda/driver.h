// One CUDA device as rlx uses it: modules, launches, memory, streams, events, graphs.
//
// Implemented by the driver library (api/driver.cpp) and by the emulator of the tests (cpp/emu).
// Calls throw Error(device) naming the call and CUDA's reason; the executor adds the ONNX node.
// All pointers are device addresses unless a name says host; device and host addresses never
// collide (unified addressing), so copies need no direction. Safe to use from many threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace rlx::cuda {

struct StreamTag;
struct EventTag;
struct ModuleTag;
struct FunctionTag;
struct GraphTag;
using Stream = StreamTag*;      // null is the legacy default stream
using Event = EventTag*;
using Module = ModuleTag*;
using Function = FunctionTag*;  // of a module, valid as long as that is loaded
using Graph = GraphTag*;        // instantiated

struct DeviceInfo {
  int ordinal = 0;
  std::string name;
  int capability = 0;             // 90 for 9.0
  int multiprocessors = 0;
  int shared_per_block = 0;       // most dynamic shared memory of a block, with opt-in
  int threads_per_multiprocessor = 0;
  size_t l2_bytes = 0, memory_bytes = 0;
};

struct Extent3 {
  uint32_t x = 1, y = 1, z = 1;   // of a grid: x < 2^31, y and z <= 65535
};

struct LaunchShape {
  Extent3 grid, block;
  uint32_t shared_bytes = 0;      // dynamic; above 48 KiB after allow_shared
  Extent3 cluster;
  bool cooperative = false;       // all blocks are resident; they may wait for each other
  bool programmatic = false;      // may begin before its predecessor ends: the kernel waits itself
};

struct ContextTag;

// While it lives, the calling thread works in a GPU's context, and in the caller's again after it:
// PyTorch's current GPU is that of this context. False when it is lost. The thread may then also
// do what CUDA forbids, and answers by spoiling the capture, as long as another library captures a
// stream, such as to ask for memory.
class [[nodiscard]] Current {
 public:
  using Exchange = int (*)(int* mode);        // the thread's mode for another
  using Enter = int (*)(ContextTag* context);

  explicit Current(bool alive) : alive_(alive) {}
  Current(Exchange exchange, int mode) : alive_(true), exchange_(exchange), mode_(mode) {
    exchange_(&mode_);
  }
  // Enters `before`, which may be null, when it ends.
  Current(Exchange exchange, int mode, Enter enter, ContextTag* before) : Current(exchange, mode) {
    enter_ = enter, before_ = before;
  }
  ~Current() {
    if (exchange_) exchange_(&mode_);
    if (enter_) enter_(before_);
  }
  Current(const Current&) = delete;
  explicit operator bool() const { return alive_; }

 private:
  const bool alive_;
  const Exchange exchange_ = nullptr;
  int mode_ = 0;
  Enter enter_ = nullptr;
  ContextTag* before_ = nullptr;
};

class Driver {
 public:
  virtual ~Driver() = default;
  virtual const DeviceInfo& info() const = 0;
  // Whether device memory can be read and written as the host's is: in the emulator.
  virtual bool host_memory() const { return false; }
  // Libraries work in the calling thread's current context.
  virtual Current make_current() = 0;
  virtual Current make_current_quietly() noexcept = 0;
  virtual void synchronize_all() = 0;

  // --- kernels ---
  virtual Module load(std::span<const std::byte> image) = 0;  // a CUBIN or its emulation
  virtual void unload(Module module) noexcept = 0;
  virtual Function function(Module module, const std::string& entry) = 0;
  virtual void allow_shared(Function function, uint32_t bytes) = 0;
  // How many blocks of this shape one multiprocessor holds.
  virtual int blocks_per_multiprocessor(Function function, uint32_t threads,
                                        uint32_t shared_bytes) = 0;
  // `params` is the kernel's one parameter, copied before the call returns.
  virtual void launch(Function function, const LaunchShape& shape,
                      std::span<const std::byte> params, Stream stream) = 0;

  // --- memory ---
  virtual void* allocate(size_t bytes) = 0;                    // 256-byte aligned
  virtual void free(void* memory) noexcept = 0;
  virtual void* allocate_host(size_t bytes) = 0;               // pinned
  virtual void free_host(void* memory) noexcept = 0;
  virtual void copy(void* to, const void* from, size_t bytes, Stream stream) = 0;
  virtual void copy_in(void* to, const void* from, size_t bytes, Stream stream) = 0;  // of the host
  virtual void fill(void* to, uint8_t value, size_t bytes, Stream stream) = 0;
  virtual bool on_device(const void* memory) = 0;
  // Addresses without memory, and memory behind them later; sizes are multiples of granularity().
  virtual size_t granularity() = 0;
  virtual void* reserve(size_t bytes) = 0;
  virtual void map(void* at, size_t bytes) = 0;
  virtual void unmap(void* at, size_t bytes) noexcept = 0;     // one whole earlier map
  virtual void unreserve(void* at, size_t bytes) noexcept = 0;

  // --- order ---
  virtual Stream make_stream() = 0;
  virtual void free(Stream stream) noexcept = 0;
  virtual void synchronize(Stream stream) = 0;
  virtual Event make_event(bool timed) = 0;
  virtual void free(Event event) noexcept = 0;
  virtual void record(Event event, Stream stream) = 0;
  virtual void wait(Stream stream, Event event) = 0;           // work put there later waits
  virtual void synchronize(Event event) = 0;
  virtual double milliseconds(Event begin, Event end) = 0;

  // --- graphs: what this thread puts on the stream is kept instead of run ---
  virtual void begin_capture(Stream stream) = 0;
  virtual Graph end_capture(Stream stream) = 0;                // instantiated
  virtual void abandon_capture(Stream stream) noexcept = 0;
  virtual void launch(Graph graph, Stream stream) = 0;
  virtual void free(Graph graph) noexcept = 0;
  virtual bool is_captured(Stream stream) = 0;                 // by whomever
};

}  // namespace rlx::cuda
