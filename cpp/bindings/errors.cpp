// Turns the core's exceptions into those of rlx.errors, with their fields.
#include "core/error.h"

#include <pybind11/pybind11.h>

#include <array>

#include "bindings/register.h"

namespace py = pybind11;

namespace rlx::bindings {
namespace {

constexpr std::array class_names = {
    "ModelError", "UnsupportedError", "InputError", "DeviceError",
    "MemoryLimitError", "StaleHandleError", "InternalError",
};
static_assert(class_names.size() == size_t(ErrorKind::internal) + 1);

py::object text_or_none(const std::string& text) {
  return text.empty() ? py::object(py::none()) : py::object(py::str(text));
}

void raise(const Error& error) {
  using namespace py::literals;
  // Imported when first needed: rlx.errors is no part of this module.
  const py::object type =
      py::module_::import("rlx.errors").attr(class_names.at(size_t(error.kind)));
  const py::object instance =
      type(error.what(), "node"_a = text_or_none(error.node), "op"_a = text_or_none(error.op),
           "expected"_a = text_or_none(error.expected), "got"_a = text_or_none(error.got),
           "remedy"_a = text_or_none(error.remedy));
  PyErr_SetObject(type.ptr(), instance.ptr());
}

py::handle respecialise_type;  // alive as long as the module

}  // namespace

void register_errors(py::module_& module) {
  respecialise_type = PyErr_NewExceptionWithDoc(
      "rlx._core.Respecialise",
      "An assumption of the program failed; its argument names what to import without.", nullptr,
      nullptr);
  if (!respecialise_type) throw py::error_already_set();
  module.attr("Respecialise") = respecialise_type;

  py::register_local_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const Error& error) {
      raise(error);
    } catch (const Respecialise& failed) {
      PyErr_SetObject(respecialise_type.ptr(), respecialise_type(failed.assumption).ptr());
    }
  });
}

}  // namespace rlx::bindings
