// What a backend fills: a Device selects steps for a primitive at known dims, and runs them.
// exec and plan see devices only through this header.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/error.h"
#include "core/expr.h"
#include "core/small_vector.h"
#include "program/program.h"

namespace rlx {

// A tensor at known dims. Strides are in elements; row-major unless the value lives in a
// capacity buffer (a growing past). dtype none: the optional operand is absent.
// An output dim that the step itself finds (a count) is given as its upper bound; the step
// writes its result densely at the size it found.
struct TensorDesc {
  DType dtype = DType::none;
  Dims shape, strides;
  const Constant* constant = nullptr;  // set for weights: may be packed once

  int64_t count() const { return element_count(shape); }
  size_t bytes() const { return size_t(count()) * size_of(dtype); }
  bool contiguous() const {
    int64_t expected = 1;
    for (size_t i = shape.size(); i-- > 0; expected *= shape[i]) {
      if (shape[i] != 1 && strides[i] != expected) return count() == 0;
    }
    return true;
  }
};

enum class StepKind : uint8_t { launch, gemm, dnn, host, copy, fill, record, wait };

struct StepState {  // what a body must change while running; one for each Context
  virtual ~StepState() = default;
};

struct RunArgs {
  // The node's inputs, then its outputs; null where absent. An output may have the address of
  // the input it was allowed to overwrite, or of the state that it continues.
  void* const* operands;
  void* workspace;        // Selection::workspace bytes, 64-byte aligned
  StepState* state;       // what make_state gave
  int threads;
  void* stream;           // of the Context's Queue; null on the CPU
  uint64_t* random;       // the Context's Philox counter, then a word for faults in data, where
                          // the device reaches them
};

// An immutable unit of work with its parameters inside; shared by all Contexts of a Plan.
struct StepBody {
  virtual ~StepBody() = default;
  virtual std::unique_ptr<StepState> make_state() const { return nullptr; }
  virtual void run(const RunArgs& args) const = 0;  // throws Error for bad data
};

struct SelectedStep {
  StepKind kind;
  std::shared_ptr<const StepBody> body;
};

struct Selection {
  std::vector<SelectedStep> steps;
  size_t workspace = 0;
  std::string rung;    // which implementation, e.g. "onednn jit:avx2"
  std::string reason;  // why this one and not the one before it
  double creation_seconds = 0.0;  // spent making library primitives, which bind reports apart
  uint64_t unread = 0;  // bit i: the steps have a form of their own of the constant input i
};

// Packed forms of constants, made once and shared by the Plans of a Session.
class PackCache {
 public:
  virtual ~PackCache() = default;
  // The bytes of `constant` in `format` (64-byte aligned); `fill` writes them the first time.
  virtual std::shared_ptr<const void> get(const Constant& constant, const std::string& format,
                                          size_t bytes,
                                          const std::function<void(void*)>& fill) = 0;
};

struct SelectRequest {
  const Prim& prim;
  std::span<const TensorDesc> inputs, outputs;
  std::span<const Number> numbers;  // every expression of the program, evaluated
  int threads;
  std::string_view force;           // a rung to insist on, or empty
  PackCache& packs;

  int64_t dim(ExprId id) const { return numbers[size_t(id)].i; }
  double real(ExprId id) const { return numbers[size_t(id)].f; }
};

// Growable memory whose addresses never change: reserved once, backed as needed.
class Arena {
 public:
  virtual ~Arena() = default;
  virtual std::byte* base() = 0;
  virtual void grow(size_t bytes) = 0;  // at least this much is usable afterwards
  virtual size_t size() const = 0;
};

// Work that a Queue was given, kept to be done again at the same addresses.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void replay() = 0;  // puts it on the Queue that made it
};

// What a device with memory of its own is given to do, in order; one for each Context.
class Queue {
 public:
  virtual ~Queue() = default;
  // Work from now on goes to the caller's stream, behind what was put here before; null: to one
  // of its own.
  virtual void use(void* stream) = 0;
  virtual void leave() noexcept = 0;  // the caller's stream, which may be gone before the next use
  virtual void* stream() = 0;     // RunArgs::stream
  virtual uint64_t* random() = 0; // RunArgs::random
  // Between host and device memory, any way. Host memory that is read may be changed after the
  // call; host memory that is written holds the bytes after synchronize().
  virtual void copy(void* to, const void* from, size_t bytes) = 0;
  // Device memory for what is put here only.
  virtual std::shared_ptr<void> allocate(size_t bytes) = 0;
  virtual void synchronize() = 0;
  virtual void drain() noexcept = 0;  // synchronize() where nothing may be thrown
  // What this thread puts here until the end is recorded instead of done.
  virtual void begin_recording() = 0;
  virtual std::unique_ptr<Recording> end_recording() = 0;
  virtual void abandon_recording() noexcept = 0;
  // A node's steps follow, for NVIDIA's profilers; null: its last step was put here.
  virtual void name_node(const char*) {}
  // How long the device works on what is put here between the two, in ns; waits for it.
  virtual void begin_timing() = 0;
  virtual int64_t end_timing() = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;
  virtual Selection select(const SelectRequest& request) const = 0;
  virtual std::unique_ptr<Arena> make_arena() const = 0;
  virtual int default_threads() const = 0;
  // What `force` may name.
  virtual std::span<const std::string_view> rungs() const { return {}; }

  // --- a device with memory of its own; the rest work on the host's ---
  // Its number among the GPUs; -1: its memory is the host's.
  virtual int ordinal() const { return -1; }
  // Null when steps are done before run() returns, on host memory.
  virtual std::unique_ptr<Queue> make_queue(uint64_t random) const;
  // The device's copy of a weight, made once while anybody holds one.
  virtual std::shared_ptr<const void> upload(const Constant& constant) const;
  // Work on any stream may use it, also still when it is freed.
  virtual std::shared_ptr<void> allocate(size_t bytes) const;
  // Behind all that any Queue was given; done when it returns.
  virtual void copy(void* to, const void* from, size_t bytes) const;
  // Whether the executor can look into the arena, to check what steps write.
  virtual bool arena_is_visible() const { return true; }
};

}  // namespace rlx
