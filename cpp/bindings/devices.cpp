// The devices of this build: made by name, never changed in silence.
#include "backend.h"
#include "bindings/register.h"
#include "core/error.h"
#include "cpu/device.h"
#include "exec/devices.h"

#include <pybind11/stl.h>

namespace py = pybind11;

namespace rlx::bindings {
namespace {

std::shared_ptr<Device> make_device(const std::string& name) {
  if (name == "cpu" || name == "auto") {
    // pybind11 holds no pointers to const; nothing of a Device changes.
    return std::const_pointer_cast<Device>(cpu::make_cpu_device());
  }
  for (const DeviceMaker& maker : extra_devices()) {
    if (maker.name == name) return std::const_pointer_cast<Device>(maker.make());
  }
  Error error(ErrorKind::device, "there is no device '" + name + "'");
  error.expected_got("auto or cpu", name);
  throw error;
}

}  // namespace

void register_devices(py::module_& module) {
  using namespace py::literals;
  py::class_<Device, std::shared_ptr<Device>>(module, "Device")
      .def_property_readonly("name", &Device::name)
      .def_property_readonly("default_threads", &Device::default_threads);
  module.def("make_device", &make_device, "name"_a);
  module.def("devices", [] { return std::vector<std::string>{"cpu"}; });
}

}  // namespace rlx::bindings
