// Outputs of a run as new tensors in GPU memory.
#include "bindings/device_array.h"
#include "bindings/interpreter_lock.h"
#include "cuda/device.h"

namespace rlx::bindings {

void* DeviceSink::tensor(size_t output, DType dtype, std::span<const int64_t> shape, bool) {
  auto array = std::make_shared<DeviceArray>();
  const Device& device = self_.executable.device();
  array->dtype = dtype;
  array->shape.assign(shape.begin(), shape.end());
  const size_t bytes = size_t(element_count(shape)) * size_of(dtype);
  array->memory = cuda::gpu_of(device)->pool->get(bytes, static_cast<cuda::Stream>(stream_));
  array->ordinal = self_.ordinal;
  array->stream = stream_;
  array->device = self_.device;
  void* memory = array->memory.get();
  arrays_[output] = std::move(array);
  return memory;
}

void DeviceSink::value(size_t output, RunValue value) {
  values_[output] = std::make_unique<RunValue>(std::move(value));
}

void DeviceSink::long_work() {
  if (!thread_) thread_ = PyEval_SaveThread();
}

void DeviceSink::take_gil() {
  if (thread_) take_lock(thread_);
  thread_ = nullptr;
}

PyObject* DeviceSink::finish() {
  py::dict dict;
  for (size_t j = 0; j < arrays_.size(); ++j) {
    const py::handle name(self_.outputs[j].name);
    if (arrays_[j]) dict[name] = py::cast(arrays_[j]);
    if (values_[j]) dict[name] = to_python(*values_[j], nullptr);
  }
  return dict.release().ptr();
}

}  // namespace rlx::bindings
