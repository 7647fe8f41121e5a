// The executor's ways back into Python: Host stages and the user's interrupt.
#include "exec/hooks.h"

#include "bindings/executable.h"
#include "core/error.h"

namespace rlx::bindings {
namespace {

void call_host(const Host& host, std::span<const RunValue> inputs, std::span<RunValue> outputs,
               StringTable* strings) {
  const py::gil_scoped_acquire gil;
  py::tuple arguments(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) arguments[i] = to_python(inputs[i], strings);
  const py::handle callable(static_cast<PyObject*>(host.callable.get()));
  const py::object returned = callable(*arguments);
  const bool several = PyTuple_Check(returned.ptr()) || PyList_Check(returned.ptr());
  const auto results = several && outputs.size() != 1
                           ? py::reinterpret_borrow<py::sequence>(returned)
                           : py::sequence(py::make_tuple(returned));
  if (results.size() != outputs.size()) {
    throw Error(ErrorKind::internal, "host function '" + host.function + "' gave " +
                                         std::to_string(results.size()) + " results, not " +
                                         std::to_string(outputs.size()));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const py::object result = results[i];
    const bool listed = PyList_Check(result.ptr());
    const bool array = numpy().PyArray_Check_(result.ptr());
    const DType dtype = array ? dtype_of(proxy(result.ptr())->descr) : DType::none;
    outputs[i] = from_python(result.ptr(), listed ? ValueKind::sequence : ValueKind::tensor, dtype,
                             host.function.c_str(), strings);
  }
}

void check_interrupt() {
  const py::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

}  // namespace

void install_hooks() { hooks() = {&call_host, &check_interrupt}; }

}  // namespace rlx::bindings
