// The devices of this build: made by name, never changed in silence.
#include <algorithm>
#include <charconv>

#include "backend.h"
#include "bindings/cuda_probe.h"
#include "bindings/device_array.h"
#include "bindings/interpreter_lock.h"
#include "bindings/register.h"
#include "core/error.h"
#include "cpu/device.h"
#include "cuda/device.h"
#include "exec/devices.h"

#include <pybind11/stl.h>

namespace py = pybind11;

namespace rlx::bindings {
namespace {

// pybind11 holds no pointers to const; nothing of a Device changes.
std::shared_ptr<Device> make_cpu() {
  return std::const_pointer_cast<Device>(cpu::make_cpu_device());
}

std::shared_ptr<Device> make_cuda(int ordinal, cuda::DeviceOptions options) {
  find_cuda();
  const Unlocked unlocked;  // another thread may have begun to open it
  return cuda::make_device(cuda::open_gpu(ordinal), options);
}

bool is_extra(const std::string& name) {
  return std::ranges::any_of(extra_devices(), [&](const DeviceMaker& m) { return m.name == name; });
}

int ordinal_of(const std::string& name) {
  int ordinal = 0;
  if (name == "cuda") return 0;
  const char* end = name.data() + name.size();
  const auto [stop, status] = std::from_chars(name.data() + 5, end, ordinal);
  if (name.starts_with("cuda:") && status == std::errc() && stop == end) return ordinal;
  throw Error(ErrorKind::device, "there is no device '" + name + "'")
      .expected_got("auto, cpu, cuda or cuda:N", name);
}

std::shared_ptr<Device> make_device(const std::string& name, bool tf32, bool log_fallback,
                                    bool half_activations) {
  const cuda::DeviceOptions options{
      .tf32 = tf32, .log_fallback = log_fallback, .half_activations = half_activations};
  if (name == "cpu") return make_cpu();
  for (const DeviceMaker& maker : extra_devices()) {
    if (maker.name == name) return std::const_pointer_cast<Device>(maker.make());
  }
  if (name != "auto") return make_cuda(ordinal_of(name), options);
  if (!cuda_reason().empty()) return make_cpu();
  return make_cuda(0, options);
}

// The GPU that make_device(name) may open.
std::optional<int> gpu_behind(const std::string& name) {
  if (name == "cpu" || is_extra(name)) return std::nullopt;
  const int ordinal = name == "auto" ? 0 : ordinal_of(name);
  find_cuda();
  return ordinal;
}

// These begin to open what make_device(name) and a first run need; they return at once.
void begin_device(const std::string& name) {
  if (const auto ordinal = gpu_behind(name)) cuda::begin_gpu(*ordinal);
}
void begin_libraries(const std::string& name, bool half, bool dnn) {
  if (const auto ordinal = gpu_behind(name)) cuda::begin_libraries(*ordinal, half, dnn);
}

std::vector<std::string> devices() {
  std::vector<std::string> names;
  for (int ordinal : usable_gpus()) names.push_back("cuda:" + std::to_string(ordinal));
  names.push_back("cpu");
  return names;
}

std::vector<std::string> rungs_of(const Device& device) {
  const auto names = device.rungs();
  return {names.begin(), names.end()};
}

}  // namespace

void register_devices(py::module_& module) {
  using namespace py::literals;
  py::class_<Device, std::shared_ptr<Device>>(module, "Device")
      .def_property_readonly("name", &Device::name)
      .def_property_readonly("default_threads", &Device::default_threads)
      .def_property_readonly("rungs", &rungs_of);
  module.def("make_device", &make_device, "name"_a, "tf32"_a = true,
             "log_fallback"_a = false, "half_activations"_a = false);
  module.def("begin_device", &begin_device, "name"_a);
  module.def("begin_libraries", &begin_libraries, "name"_a, "half"_a, "dnn"_a);
  py::module_::import("atexit").attr("register")(py::cpp_function([] {
    const Unlocked unlocked;
    cuda::rest_gpus();
  }));
  module.def("make_offline_device", [](int capability, bool libraries, std::string folder,
                                       bool tf32, bool half_activations) {
    find_cuda();
    return cuda::make_offline_device(capability, libraries, std::move(folder),
                                     {.tf32 = tf32, .half_activations = half_activations});
  }, "capability"_a, "libraries"_a, "folder"_a, "tf32"_a, "half_activations"_a,
     "A GPU that only compiles; needs none.");
  module.def("finish_kernels", [](const std::shared_ptr<Device>& device) {
    const Unlocked unlocked;
    cuda::finish_kernels(*device);
  }, "device"_a, "Until the device has compiled all that was asked for.");
  module.def("devices", &devices);
  register_cuda_probe(module);
  register_device_array(module);
}

}  // namespace rlx::bindings
