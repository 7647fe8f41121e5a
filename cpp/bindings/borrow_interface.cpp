// GPU tensors by __cuda_array_interface__, up to its version 3.
#include <pybind11/stl.h>

#include <tuple>

#include "bindings/device_borrow.h"
#include "bindings/dlpack.h"
#include "cuda/api/driver.h"

namespace rlx::bindings {
namespace {

// What __cuda_array_interface__ says.
struct Interface {
  std::vector<int64_t> shape, strides;  // strides in bytes; none when dense
  std::string typestr;
  uintptr_t address = 0;
  bool read_only = false;
  py::object stream = py::none();
};

Interface interface_of(const py::object& found) {
  Interface read;
  const py::dict d(found);
  read.shape = d["shape"].cast<std::vector<int64_t>>();
  read.typestr = d["typestr"].cast<std::string>();
  if (d.contains("strides") && !d["strides"].is_none()) {
    read.strides = d["strides"].cast<std::vector<int64_t>>();
    if (read.strides.size() != read.shape.size()) throw py::cast_error();
  }
  std::tie(read.address, read.read_only) = d["data"].cast<std::pair<uintptr_t, bool>>();
  if (d.contains("stream")) read.stream = d["stream"];
  return read;
}

// Version 3's "stream": the one that makes the contents, or None where they are there.
void await_contents(const py::object& given, const char* name, int ordinal, void* stream) {
  if (given.is_none()) return;
  const uintptr_t handle = PyLong_Check(given.ptr()) ? PyLong_AsSize_t(given.ptr()) : 0;
  if (PyErr_Occurred()) PyErr_Clear();
  if (handle == 0 || handle == SIZE_MAX || PyBool_Check(given.ptr())) {
    throw refusal(name, "its __cuda_array_interface__ names no stream")
        .expected_got("None, 1, 2 or a stream's handle", std::string(py::repr(given)));
  }
  auto* const producer = reinterpret_cast<void*>(handle);
  if (producer != stream) order_streams(*cuda::api::open_driver(ordinal), producer, stream);
}

}  // namespace

bool borrow_by_interface(PyObject* object, const char* name, int ordinal, void* stream,
                         Borrowed& into) {
  const py::object found = attribute(object, "__cuda_array_interface__");
  if (!found || !py::isinstance<py::dict>(found)) return false;
  const Interface array = reading(name, "__cuda_array_interface__",
                                  [&] { return interface_of(found); });
  DType dtype = DType::none;
  for (const DLTypeRow& row : dl_types) {
    if (row.typestr && array.typestr == row.typestr) dtype = row.dtype;
  }
  if (dtype == DType::none) throw refusal(name, "ONNX has no element type " + array.typestr);
  into.shape = array.shape;
  check_dense(name, into.shape, array.strides, int64_t(size_of(dtype)));
  const auto* data = reinterpret_cast<const void*>(array.address);
  if (data) {
    const int owner = cuda::api::open_driver(ordinal)->ordinal_of(data);
    if (owner >= 0) check_ordinal(name, owner, ordinal);
  }
  await_contents(array.stream, name, ordinal, stream);
  into.read_only = array.read_only;
  into.keeper = py::reinterpret_borrow<py::object>(object);
  into.input = {dtype, into.shape, data, nullptr, true, true};
  return true;
}

}  // namespace rlx::bindings
