// Where the outputs of a run go: fresh NumPy arrays, or those that the caller gave.
#pragma once

#include "bindings/executable.h"

namespace rlx::bindings {

// Holds the GIL unless long work was begun.
class ArraySink final : public OutputSink {
 public:
  ArraySink(const PyExecutable& self, PyObject* out)
      : self_(self), out_(out), results_(self.outputs.size()) {}
  ~ArraySink() override;
  ArraySink(const ArraySink&) = delete;
  ArraySink& operator=(const ArraySink&) = delete;

  void* tensor(size_t output, DType dtype, std::span<const int64_t> shape, bool) override;
  void value(size_t output, RunValue value) override;
  void long_work() override;
  void take_gil();

  // The dict of results: `out` itself when it has them all.
  PyObject* finish(const StringTable* strings);

 private:
  struct Result {
    PyObject* object = nullptr;
    std::vector<int64_t> ids;         // of a string tensor
    std::unique_ptr<RunValue> value;  // of a sequence or an optional
  };

  PyObject* given(size_t output) const;
  void check_given(PyObject* given, size_t output, DType dtype, std::span<const int64_t> shape);

  const PyExecutable& self_;
  PyObject* out_;
  std::vector<Result> results_;
  PyThreadState* thread_ = nullptr;  // of this thread, while it does not hold the GIL
};

}  // namespace rlx::bindings
