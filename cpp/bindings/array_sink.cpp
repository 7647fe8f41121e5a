// Allocates, checks and collects the outputs of a run.
#include "bindings/array_sink.h"

#include <algorithm>

#include "bindings/interpreter_lock.h"
#include "core/error.h"
#include "exec/numbers.h"

namespace rlx::bindings {

ArraySink::~ArraySink() {
  take_gil();
  for (Result& r : results_) Py_XDECREF(r.object);
}

PyObject* ArraySink::given(size_t output) const {
  return out_ ? PyDict_GetItemWithError(out_, self_.outputs[output].name) : nullptr;
}

void* ArraySink::tensor(size_t output, DType dtype, std::span<const int64_t> shape, bool) {
  const bool released = thread_ != nullptr;
  take_gil();
  Result& result = results_[output];
  PyObject* array = given(output);
  if (array) {
    check_given(array, output, dtype, shape);
    Py_INCREF(array);
  } else {
    array = new_array(dtype, shape);
  }
  Py_XSETREF(result.object, array);
  void* memory = proxy(array)->data;
  if (dtype == DType::string) {
    result.ids.resize(size_t(element_count(shape)));
    memory = result.ids.data();
  }
  if (released) long_work();
  return memory;
}

void ArraySink::value(size_t output, RunValue value) {
  results_[output].value = std::make_unique<RunValue>(std::move(value));
}

void ArraySink::long_work() {
  if (!thread_) thread_ = PyEval_SaveThread();
}

void ArraySink::take_gil() {
  if (!thread_) return;
  take_lock(thread_);
  thread_ = nullptr;
}

PyObject* ArraySink::finish(const StringTable* strings) {
  bool complete = out_ != nullptr;
  for (size_t j = 0; j < results_.size(); ++j) {
    Result& r = results_[j];
    if (r.value) r.object = to_python(*r.value, strings).release().ptr();
    if (!r.ids.empty()) fill_strings(r.object, r.ids, *strings);
    complete = complete && (!r.object || given(j) == r.object);  // a State's has no object
  }
  if (complete) return Py_NewRef(out_);
  py::dict dict;
  for (size_t j = 0; j < results_.size(); ++j) {
    PyObject* object = results_[j].object;
    if (object && PyDict_SetItem(dict.ptr(), self_.outputs[j].name, object) != 0) {
      throw py::error_already_set();
    }
  }
  return dict.release().ptr();
}

void ArraySink::check_given(PyObject* given, size_t output, DType dtype,
                            std::span<const int64_t> shape) {
  constexpr int wanted = py::detail::npy_api::NPY_ARRAY_C_CONTIGUOUS_ |
                         py::detail::npy_api::NPY_ARRAY_ALIGNED_ |
                         py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
  const std::string name = self_.outputs[output].text();
  if (!numpy().PyArray_Check_(given)) {
    throw Error(ErrorKind::input, "out['" + name + "'] must be a NumPy array");
  }
  const auto* array = proxy(given);
  const std::span<const int64_t> dims = shape_of(given);
  const bool same_shape = std::ranges::equal(shape, dims);
  if (array->descr == descr_of(dtype) && same_shape && (array->flags & wanted) == wanted) return;
  Error error(ErrorKind::input, "out['" + name + "'] does not fit");
  error.expected_got("a writable, C-contiguous " + (name_of(dtype) + text_of(shape)),
                     std::string(py::str(py::handle(array->descr))) + text_of(dims));
  throw error;
}

}  // namespace rlx::bindings
