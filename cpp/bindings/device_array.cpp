// Tensors in GPU memory as Python sees them.
#include "bindings/device_array.h"

#include <pybind11/stl.h>

#include "bindings/dlpack.h"
#include "bindings/interpreter_lock.h"
#include "core/error.h"
#include "cuda/device.h"

namespace rlx::bindings {
namespace {

const DLTypeRow& row_of(DType dtype) {
  for (const DLTypeRow& row : dl_types) {
    if (row.dtype == dtype) return row;
  }
  throw Error(ErrorKind::unsupported,
              std::string("DLPack has no element type ") + name_of(dtype));
}

struct Export {  // what a capsule owns
  DLManagedTensor managed{};
  std::shared_ptr<DeviceArray> array;
};

void drop_capsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, "dltensor")) return;  // a consumer has taken it
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
  managed->deleter(managed);
}

// Makes the consumer's stream wait for what makes the contents.
void order(const DeviceArray& array, const py::object& stream) {
  const int64_t wanted = stream.is_none() ? 0 : stream.cast<int64_t>();
  if (wanted < 0) return cuda::MemoryPool::lend(array.memory);  // the consumer takes care
  auto* consumer = reinterpret_cast<void*>(wanted == 0 ? legacy_stream : uintptr_t(wanted));
  cuda::MemoryPool::lend(array.memory, static_cast<cuda::Stream>(consumer));
  if (consumer == array.stream) return;
  order_streams(*cuda::gpu_of(*array.device)->driver, array.stream, consumer);
}

py::object asked(const py::kwargs& request, const char* name) {
  return request.contains(name) ? py::object(request[name]) : py::none();
}

py::capsule to_dlpack(const std::shared_ptr<DeviceArray>& array, const py::object& stream,
                      const py::kwargs& request) {
  const py::object where = asked(request, "dl_device");
  if (!where.is_none() && !where.equal(py::make_tuple(dl_cuda, array->ordinal))) {
    throw py::buffer_error("a DeviceArray is lent on its own GPU only: copy it with numpy()");
  }
  if (PyObject_IsTrue(asked(request, "copy").ptr()) == 1) {
    throw py::buffer_error("a DeviceArray is lent, not copied: copy it in the other library");
  }
  check_alive(*array, "array");
  order(*array, stream);
  auto made = std::make_unique<Export>();
  made->array = array;
  made->managed.tensor = {array->memory.get(), {dl_cuda, array->ordinal},
                          int32_t(array->shape.size()), row_of(array->dtype).type,
                          array->shape.data(), nullptr, 0};
  made->managed.context = made.get();
  made->managed.deleter = [](DLManagedTensor* m) { delete static_cast<Export*>(m->context); };
  return py::capsule(&made.release()->managed, "dltensor", &drop_capsule);
}

py::dict interface_of(const DeviceArray& array) {
  const char* typestr = row_of(array.dtype).typestr;
  if (!typestr) throw py::attribute_error("__cuda_array_interface__ has no such element type");
  check_alive(array, "array");
  cuda::MemoryPool::lend(array.memory);
  py::dict d;
  d["shape"] = py::tuple(py::cast(array.shape));
  d["typestr"] = typestr;
  d["data"] = py::make_tuple(reinterpret_cast<uintptr_t>(array.memory.get()), false);
  d["version"] = 3;
  d["stream"] = reinterpret_cast<uintptr_t>(array.stream);
  return d;
}

py::object to_numpy(const DeviceArray& array) {
  const auto host = py::reinterpret_steal<py::object>(new_array(array.dtype, array.shape));
  const size_t bytes = size_t(element_count(array.shape)) * size_of(array.dtype);
  void* to = proxy(host.ptr())->data;
  const Unlocked unlocked;
  if (cuda::MemoryPool::is_lent(array.memory)) {
    array.device->copy(to, array.memory.get(), bytes);  // waits for all streams
  } else {
    const cuda::Gpu& gpu = *cuda::gpu_of(*array.device);
    gpu.driver->synchronize(static_cast<cuda::Stream>(array.stream));
    gpu.weights->copy(to, array.memory.get(), bytes);
  }
  return host;
}

}  // namespace

void check_alive(const DeviceArray& array, const std::string& name) {
  try {
    (void)cuda::gpu_of(*array.device)->driver->make_current();
  } catch (const Error& error) {
    Error named(error.kind, "'" + name + "': " + error.what());
    named.remedy = error.remedy;
    throw named;
  }
}

void register_device_array(py::module_& module) {
  using namespace py::literals;
  py::class_<DeviceArray, std::shared_ptr<DeviceArray>>(
      module, "DeviceArray", "A tensor in GPU memory; any DLPack library can take it.")
      .def_property_readonly("shape", [](const DeviceArray& a) {
        return py::tuple(py::cast(a.shape));
      })
      .def_property_readonly("ndim", [](const DeviceArray& a) { return a.shape.size(); })
      .def_property_readonly("dtype", [](const DeviceArray& a) {
        return py::reinterpret_borrow<py::object>(descr_of(a.dtype));
      })
      .def("numpy", &to_numpy, "A copy on the host.")
      .def("__array__", [](const DeviceArray& a, const py::args&, const py::kwargs&) {
        return to_numpy(a);
      })
      .def("__dlpack__", &to_dlpack, py::kw_only(), "stream"_a = py::none())
      .def("__dlpack_device__", [](const DeviceArray& a) {
        return py::make_tuple(dl_cuda, a.ordinal);
      })
      .def_property_readonly("__cuda_array_interface__", &interface_of);
}

}  // namespace rlx::bindings
