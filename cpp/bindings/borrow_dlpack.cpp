// GPU tensors by DLPack, in its form with a version and without.
#include <pybind11/stl.h>

#include "bindings/device_borrow.h"
#include "bindings/dlpack.h"

namespace rlx::bindings {
namespace {

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

}  // namespace

bool borrow_by_dlpack(PyObject* object, const char* name, int ordinal, void* stream,
                      Borrowed& into) {
  const py::object where = attribute(object, "__dlpack_device__");
  if (!where) return false;
  const auto [type, id] = reading(name, "__dlpack_device__", [&] {
    return where().cast<std::pair<int, int>>();
  });
  if (type != dl_cuda && type != dl_cuda_managed) return false;
  if (type == dl_cuda) check_ordinal(name, id, ordinal);  // PyTorch would name its current one
  const py::object lend = attribute(object, "__dlpack__");
  if (!lend) throw refusal(name, "it has no __dlpack__");
  const py::object capsule = exported(lend, name, stream);
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

}  // namespace rlx::bindings
