// Other libraries' GPU tensors as inputs of a run, without a copy.
#include <pybind11/stl.h>

#include <tuple>

#include "bindings/device_array.h"
#include "bindings/dlpack.h"
#include "core/error.h"
#include "cuda/api/driver.h"
#include "cuda/device.h"

namespace rlx::bindings {
namespace {

py::object attribute(PyObject* object, const char* name) {
  PyObject* found = PyObject_GetAttrString(object, name);
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

// `strides` in units, of which an element has `unit`; none when it is dense.
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

// Runs what reads an attribute that others define: of a wrong form it is an error of the input.
template <class Read>
auto reading(const char* name, const char* what, const Read& read) {
  std::string why;
  try {
    return read();
  } catch (const py::cast_error&) {
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_Exception)) throw;
    why = std::string(": ") + error.what();
  }
  throw refusal(name, std::string("its ") + what + " is malformed" + why);
}

void take(const DLTensor& tensor, const char* name, int ordinal, Borrowed& into) {
  if (tensor.device.type == dl_cuda) check_ordinal(name, tensor.device.id, ordinal);
  const std::span<const int64_t> shape(tensor.shape, size_t(tensor.ndim));
  check_dense(name, shape, {tensor.strides, tensor.strides ? shape.size() : 0}, 1);
  DType dtype = DType::none;
  for (const DLTypeRow& row : dl_types) {
    if (row.type == tensor.dtype) dtype = row.dtype;
  }
  if (dtype == DType::none) throw refusal(name, "ONNX has no such element type");
  into.shape.assign(shape.begin(), shape.end());
  into.input = {dtype, into.shape, static_cast<std::byte*>(tensor.data) + tensor.byte_offset,
                nullptr, true, true};
}

// In the newest form that the object's library knows.
py::object exported(const py::object& lend, const char* name, void* stream) {
  using namespace py::literals;
  const auto handle = reinterpret_cast<uintptr_t>(stream);
  try {
    try {
      return lend("stream"_a = handle, "max_version"_a = py::make_tuple(dl_major, 0));
    } catch (py::error_already_set& error) {
      if (!error.matches(PyExc_TypeError)) throw;  // of a library before version 1
      return lend("stream"_a = handle);
    }
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_BufferError)) throw;
    throw refusal(name, std::string("its library does not lend it: ") + error.what());
  }
}

bool by_dlpack(PyObject* object, const char* name, int ordinal, void* stream, Borrowed& into) {
  const py::object where = attribute(object, "__dlpack_device__");
  if (!where) return false;
  const auto type = reading(name, "__dlpack_device__", [&] {
    return where().cast<std::pair<int, int>>().first;
  });
  if (type != dl_cuda && type != dl_cuda_managed) return false;
  const py::object capsule = exported(attribute(object, "__dlpack__"), name, stream);
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
    const auto& managed = *static_cast<const DLManagedTensorVersioned*>(
        PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
    if (managed.major != dl_major) {
      throw refusal(name, "its DLPack has another version")
          .expected_got("1", std::to_string(managed.major));
    }
    take(managed.tensor, name, ordinal, into);
    into.read_only = managed.flags & dl_read_only;
  } else if (PyCapsule_IsValid(capsule.ptr(), "dltensor")) {
    take(static_cast<const DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"))
             ->tensor, name, ordinal, into);
  } else {
    throw refusal(name, "its __dlpack__ gives no tensor");
  }
  into.keeper = capsule;  // unused, so that it frees the tensor itself
  return true;
}

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

bool by_interface(PyObject* object, const char* name, int ordinal, void* stream, Borrowed& into) {
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

}  // namespace

bool borrow_device_tensor(PyObject* object, const char* name, int ordinal, void* stream,
                          Borrowed& into) {
  if (py::isinstance<DeviceArray>(object)) {
    const auto& array = *py::handle(object).cast<DeviceArray*>();
    check_ordinal(name, array.ordinal, ordinal);
    check_alive(array, name);
    cuda::MemoryPool::lend(array.memory, static_cast<cuda::Stream>(stream));
    if (array.stream != stream) order_streams(*cuda::gpu_of(*array.device)->driver, array.stream, stream);
    into.keeper = py::reinterpret_borrow<py::object>(object);
    into.input = {array.dtype, array.shape, array.memory.get(), nullptr, true, true};
    return true;
  }
  return by_dlpack(object, name, ordinal, stream, into) ||
         by_interface(object, name, ordinal, stream, into);
}

}  // namespace rlx::bindings
