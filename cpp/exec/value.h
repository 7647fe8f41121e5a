// What flows between the stages of a run: tensors, sequences and optionals.
#pragma once

#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "core/dtype.h"
#include "core/small_vector.h"

namespace rlx {

struct Tensor {
  DType dtype = DType::none;
  Dims shape;
  void* data = nullptr;          // dense and row-major
  std::shared_ptr<void> owner;   // null: borrowed from the run
  bool on_device = false;        // the host cannot read it
  size_t bytes() const { return size_t(element_count(shape)) * size_of(dtype); }
};

struct Sequence;
struct Optional;
using RunValue = std::variant<Tensor, Sequence, Optional>;

struct Sequence {  // immutable: operations make new ones that share their items
  std::shared_ptr<const std::vector<RunValue>> items;
};

struct Optional {
  std::shared_ptr<const RunValue> value;  // null: absent
};

// A value lent to a run. `value` is set for sequences and optionals, the rest for tensors.
struct Input {
  DType dtype = DType::none;
  std::span<const int64_t> shape;
  const void* data = nullptr;
  const RunValue* value = nullptr;
  bool given = true;  // false: an input that a State provides
  bool on_device = false;
};

// Where a run puts its outputs.
class OutputSink {
 public:
  virtual ~OutputSink() = default;
  // Dense memory for a tensor output, on the device or the host, as wants_on_device() says; asked
  // for before it is computed.
  virtual void* tensor(size_t output, DType dtype, std::span<const int64_t> shape,
                       bool on_device) = 0;
  // Where an output is to lie that is made on the device or not.
  virtual bool wants_on_device(size_t, bool /*made_there*/) const { return false; }
  // A sequence or an optional; its tensors own their memory.
  virtual void value(size_t output, RunValue value) = 0;
  // False: the caller has no use for an output that is only a copy of something it knows.
  virtual bool wanted(size_t) { return true; }
  // Long work follows: time to let go of what others wait for.
  virtual void long_work() {}
};

// Memory of its own for a tensor that outlives the step or stage that makes it.
std::shared_ptr<void> allocate(size_t bytes);
Tensor make_tensor(DType dtype, Dims shape);
Tensor copy_of(const Tensor& tensor);

}  // namespace rlx
