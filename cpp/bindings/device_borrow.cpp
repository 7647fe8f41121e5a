// Other libraries' GPU tensors as inputs of a run, without a copy.
#include "bindings/device_array.h"
#include "bindings/dlpack.h"
#include "core/error.h"
#include "cuda/api/driver.h"

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

void check_dense(const char* name, std::span<const int64_t> shape, const int64_t* strides) {
  int64_t expected = 1;
  for (size_t k = shape.size(); strides && k-- > 0; expected *= shape[k]) {
    if (shape[k] == 1 || strides[k] == expected) continue;
    if (element_count(shape) == 0) return;
    Error error = refusal(name, "a GPU array must be contiguous");
    error.remedy = "its contiguous() or the like";
    throw error;
  }
}

void take(const DLTensor& tensor, const char* name, int ordinal, Borrowed& into) {
  check_ordinal(name, tensor.device.id, ordinal);
  const std::span<const int64_t> shape(tensor.shape, size_t(tensor.ndim));
  check_dense(name, shape, tensor.strides);
  DType dtype = DType::none;
  for (const DLTypeRow& row : dl_types) {
    if (row.type == tensor.dtype) dtype = row.dtype;
  }
  if (dtype == DType::none) throw refusal(name, "ONNX has no such element type");
  into.shape.assign(shape.begin(), shape.end());
  into.input = {dtype, into.shape, static_cast<std::byte*>(tensor.data) + tensor.byte_offset,
                nullptr, true, true};
}

bool by_dlpack(PyObject* object, const char* name, int ordinal, void* stream, Borrowed& into) {
  const py::object where = attribute(object, "__dlpack_device__");
  if (!where) return false;
  if (py::tuple(where())[0].cast<int>() != dl_cuda) return false;
  using namespace py::literals;
  const py::object capsule =
      attribute(object, "__dlpack__")("stream"_a = reinterpret_cast<uintptr_t>(stream));
  void* pointer = PyCapsule_GetPointer(capsule.ptr(), "dltensor");
  if (!pointer) throw py::error_already_set();
  take(static_cast<DLManagedTensor*>(pointer)->tensor, name, ordinal, into);
  into.keeper = capsule;  // unused, so that it frees the tensor itself
  return true;
}

// Version 3's "stream": the one that makes the contents, or None where they are there.
void await_contents(const py::dict& d, const char* name, int ordinal, void* stream) {
  if (!d.contains("stream") || d["stream"].is_none()) return;
  const py::object given = d["stream"];
  const bool counts = PyLong_Check(given.ptr()) && given.attr("__ge__")(1).cast<bool>();
  if (!counts) {
    throw refusal(name, "its __cuda_array_interface__ names no stream")
        .expected_got("None, 1, 2 or a stream's handle", std::string(py::repr(given)));
  }
  auto* const producer = reinterpret_cast<void*>(given.cast<uintptr_t>());
  if (producer != stream) order_streams(*cuda::api::open_driver(ordinal), producer, stream);
}

bool by_interface(PyObject* object, const char* name, int ordinal, void* stream, Borrowed& into) {
  const py::object found = attribute(object, "__cuda_array_interface__");
  if (!found || !py::isinstance<py::dict>(found)) return false;
  const auto d = py::reinterpret_borrow<py::dict>(found);
  for (const py::handle extent : d["shape"]) into.shape.push_back(extent.cast<int64_t>());
  const auto typestr = d["typestr"].cast<std::string>();
  DType dtype = DType::none;
  for (const DLTypeRow& row : dl_types) {
    if (row.typestr && typestr == row.typestr) dtype = row.dtype;
  }
  if (dtype == DType::none) throw refusal(name, "ONNX has no element type " + typestr);
  if (d.contains("strides") && !d["strides"].is_none()) {
    std::vector<int64_t> strides;
    for (const py::handle s : d["strides"]) {
      strides.push_back(s.cast<int64_t>() / int64_t(size_of(dtype)));
    }
    check_dense(name, into.shape, strides.data());
  }
  const py::tuple data(d["data"]);
  const auto address = data[0].cast<uintptr_t>();
  if (address) {
    const int owner = cuda::api::open_driver(ordinal)->ordinal_of(
        reinterpret_cast<const void*>(address));
    if (owner >= 0) check_ordinal(name, owner, ordinal);
  }
  await_contents(d, name, ordinal, stream);
  into.read_only = data[1].cast<bool>();
  into.keeper = py::reinterpret_borrow<py::object>(object);
  into.input = {dtype, into.shape, reinterpret_cast<const void*>(address), nullptr, true, true};
  return true;
}

}  // namespace

bool borrow_device_tensor(PyObject* object, const char* name, int ordinal, void* stream,
                          Borrowed& into) {
  if (py::isinstance<DeviceArray>(object)) {
    const auto& array = *py::handle(object).cast<DeviceArray*>();
    check_ordinal(name, array.ordinal, ordinal);
    if (array.stream != stream) by_dlpack(object, name, ordinal, stream, into);  // for the order
    into.keeper = py::reinterpret_borrow<py::object>(object);
    into.input = {array.dtype, array.shape, array.memory.get(), nullptr, true, true};
    return true;
  }
  return by_dlpack(object, name, ordinal, stream, into) ||
         by_interface(object, name, ordinal, stream, into);
}

}  // namespace rlx::bindings
