// _core.DeviceArray: a tensor in GPU memory, exchanged by DLPack and __cuda_array_interface__.
#pragma once

#include "bindings/arrays.h"
#include "bindings/executable.h"
#include "cuda/driver.h"

namespace rlx::bindings {

// Dense. Its bytes are there for whoever works behind `stream`.
struct DeviceArray {
  std::shared_ptr<void> memory;
  DType dtype = DType::none;
  std::vector<int64_t> shape;
  int ordinal = 0;
  void* stream = nullptr;  // that makes the contents
  std::shared_ptr<const Device> device;
};

// CUDA's name for the legacy default stream, on which PyTorch works unless told otherwise.
constexpr uintptr_t legacy_stream = 1;

// Throws Error(stale_handle) when its GPU was reset, or lost, since it was made.
void check_alive(const DeviceArray& array, const std::string& name);

// Makes `consumer` wait for what has been put on `producer`. A stream that is being captured cannot
// wait for others: the host does. Error(input) where only `producer` is being captured.
void order_streams(cuda::Driver& driver, void* producer, void* consumer);

// Borrows an object that says it lies on GPU `ordinal`; false when it does not lie on a GPU.
// Its producer makes `stream` wait for the contents.
bool borrow_device_tensor(PyObject* object, const char* name, int ordinal, void* stream,
                          Borrowed& into);

// Outputs as new DeviceArrays.
class DeviceSink final : public OutputSink {
 public:
  DeviceSink(const PyExecutable& self, void* stream)
      : self_(self), stream_(stream), arrays_(self.outputs.size()), values_(self.outputs.size()) {}
  ~DeviceSink() override { take_gil(); }
  DeviceSink(const DeviceSink&) = delete;
  DeviceSink& operator=(const DeviceSink&) = delete;

  bool wants_on_device(size_t, bool) const override { return true; }
  void* tensor(size_t output, DType dtype, std::span<const int64_t> shape, bool) override;
  void value(size_t output, RunValue value) override;
  void long_work() override;
  void take_gil();
  PyObject* finish();

 private:
  const PyExecutable& self_;
  void* const stream_;
  std::vector<std::shared_ptr<DeviceArray>> arrays_;
  std::vector<std::unique_ptr<RunValue>> values_;
  PyThreadState* thread_ = nullptr;
};

void register_device_array(py::module_& module);

}  // namespace rlx::bindings
