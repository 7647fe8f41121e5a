// Borrows the arrays of a launch and keeps what they lie in.
#include "bindings/launch_operands.h"

#include "bindings/casters.h"
#include "core/error.h"

namespace rlx::bindings {
namespace {

void check_type(DType got, const std::vector<DType>& fitting, const std::string& name) {
  std::string expected;
  for (const DType each : fitting) {
    if (each == got) return;
    expected += (expected.empty() ? "" : " or ") + std::string(name_of(each));
  }
  if (fitting.empty()) return;
  throw Error(ErrorKind::input, "'" + name + "' has elements of another type")
      .expected_got(expected, name_of(got));
}

}  // namespace

LaunchOperands::LaunchOperands(const cuda::UserKernel& kernel, void* stream, const py::list& given)
    : kernel_(kernel), stream_(stream) {
  for (const py::handle& each : given) {
    if (PyBytes_Check(each.ptr())) {
      values.push_back(PyBytes_AS_STRING(each.ptr()));
      owners.push_back(keep_alive(py::reinterpret_borrow<py::object>(each)));
    } else if (each.is_none()) {
      values.push_back(&pointers_.emplace_back(nullptr));
    } else {
      add_array(py::reinterpret_borrow<py::tuple>(each));
    }
  }
}

void LaunchOperands::add_array(const py::tuple& given) {
  const auto name = given[0].cast<std::string>();
  const py::object object = given[1];
  DeviceArray* ours = py::isinstance<DeviceArray>(object) ? object.cast<DeviceArray*>() : nullptr;
  Borrowed borrowed;
  if (!borrow_device_tensor(object.ptr(), name.c_str(), kernel_.ordinal(), stream_, borrowed)) {
    Error error(ErrorKind::input, "'" + name + "' does not lie on a GPU");
    error.remedy = "an array on the GPU, as rlx.cuda.to_device(array) makes one";
    throw error.expected_got("an array on cuda:" + std::to_string(kernel_.ordinal()),
                             Py_TYPE(object.ptr())->tp_name);
  }
  check_type(borrowed.input.dtype, given[2].cast<std::vector<DType>>(), name);
  if (borrowed.read_only && given[3].cast<bool>()) {
    Error error(ErrorKind::input, "'" + name + "' is read-only, and the kernel may write it");
    error.remedy = "a copy, or a parameter of the kernel that points to const";
    throw error;
  }
  values.push_back(&pointers_.emplace_back(borrowed.input.data));
  owners.push_back(keep_alive(borrowed.keeper));
  owners.push_back(keep_alive(object));
  if (ours && given[3].cast<bool>()) written_.push_back(ours);
}

void LaunchOperands::written() const {
  for (DeviceArray* array : written_) array->stream = stream_;
}

}  // namespace rlx::bindings
