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
  void* stream;           // the device's queue; null on the CPU
  uint64_t* random;       // the Context's Philox counter
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

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;
  virtual Selection select(const SelectRequest& request) const = 0;
  virtual std::unique_ptr<Arena> make_arena() const = 0;
  virtual int default_threads() const = 0;
};

}  // namespace rlx
