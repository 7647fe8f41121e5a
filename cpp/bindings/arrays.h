// NumPy arrays as inputs and outputs of a run, through NumPy's own C API.
#pragma once

#include <pybind11/numpy.h>

#include <vector>

#include "exec/strings.h"
#include "exec/value.h"
#include "program/program.h"

namespace rlx::bindings {

namespace py = pybind11;

inline const py::detail::npy_api& numpy() { return py::detail::npy_api::get(); }
inline py::detail::PyArray_Proxy* proxy(PyObject* array) { return py::detail::array_proxy(array); }

inline std::span<const int64_t> shape_of(PyObject* array) {
  static_assert(sizeof(ssize_t) == sizeof(int64_t));
  return {reinterpret_cast<const int64_t*>(proxy(array)->dimensions), size_t(proxy(array)->nd)};
}

// The NumPy (or ml_dtypes) dtype of an element type, borrowed; object for strings.
PyObject* descr_of(DType dtype);

// _core.NotArray, an InputError: something else stands where an array should.
void register_not_array(py::module_& module);

// The element type of a NumPy dtype, native or byte-swapped; none when ONNX has no such type.
DType dtype_of(PyObject* descr);

// Dense native memory of `array` for the run: the array itself if it can be. String arrays become
// ids. Throws Error(input) naming `name` when the object is no array or its dtype is unknown.
struct Borrowed {
  py::object keeper;                 // of the array that `input` points into
  std::vector<int64_t> ids;          // of a string array
  std::vector<int64_t> shape;        // of a device array
  std::unique_ptr<RunValue> value;   // of a sequence or an optional
  Input input;
  bool read_only = false;            // a device array that its producer does not let be written
};
void borrow_tensor(PyObject* object, DType expected, const char* name, StringTable* strings,
                   Borrowed& into);
// A list or tuple as a Sequence; None or a value as an Optional.
void borrow_container(PyObject* object, ValueKind kind, DType element, const char* name,
                      StringTable* strings, Borrowed& into);

// A new array; its memory is not initialised. For strings, of objects.
PyObject* new_array(DType dtype, std::span<const int64_t> shape);
void fill_strings(PyObject* array, std::span<const int64_t> ids, const StringTable& strings);

// A value as new Python objects: an array, a list, None or what an optional holds.
py::object to_python(const RunValue& value, const StringTable* strings);

// Copies an object into a value that owns its memory; for what Python returns to a stage.
RunValue from_python(PyObject* object, ValueKind kind, DType element, const char* name,
                     StringTable* strings);

}  // namespace rlx::bindings
