// Other libraries' GPU tensors as inputs of a run, without a copy.
#include "bindings/device_borrow.h"

#include "cuda/device.h"

namespace rlx::bindings {

py::object attribute(PyObject* object, const char* name) {
  PyObject* found = PyObject_GetAttrString(object, name);
  if (!found && !PyErr_ExceptionMatches(PyExc_AttributeError)) throw py::error_already_set();
  if (!found) PyErr_Clear();
  return py::reinterpret_steal<py::object>(found);
}

Error refusal(const char* name, const std::string& what) {
  return Error(ErrorKind::input, std::string("'") + name + "': " + what);
}

void check_ordinal(const char* name, int got, int expected) {
  if (got == expected) return;
  throw refusal(name, "the array lies on another GPU")
      .expected_got("cuda:" + std::to_string(expected), "cuda:" + std::to_string(got));
}

void check_dense(const char* name, std::span<const int64_t> shape,
                 std::span<const int64_t> strides, int64_t unit) {
  for (const int64_t extent : shape) {
    if (extent < 0) throw refusal(name, "an extent is negative");
  }
  int64_t expected = unit;
  for (size_t k = strides.size(); k-- > 0; expected *= shape[k]) {
    if (shape[k] == 1 || strides[k] == expected) continue;
    if (element_count(shape) == 0) return;
    Error error = refusal(name, "a GPU array must be contiguous");
    error.remedy = "its contiguous() or the like";
    throw error;
  }
}

bool borrow_device_tensor(PyObject* object, const char* name, int ordinal, void* stream,
                          Borrowed& into) {
  if (py::isinstance<DeviceArray>(object)) {
    const auto& array = *py::handle(object).cast<DeviceArray*>();
    check_ordinal(name, array.ordinal, ordinal);
    check_alive(array, name);
    cuda::MemoryPool::lend(array.memory, static_cast<cuda::Stream>(stream));
    if (array.stream != stream) {
      order_streams(*cuda::gpu_of(*array.device)->driver, array.stream, stream);
    }
    into.keeper = py::reinterpret_borrow<py::object>(object);
    into.input = {array.dtype, array.shape, array.memory.get(), nullptr, true, true};
    return true;
  }
  return borrow_by_dlpack(object, name, ordinal, stream, into) ||
         borrow_by_interface(object, name, ordinal, stream, into);
}

}  // namespace rlx::bindings
