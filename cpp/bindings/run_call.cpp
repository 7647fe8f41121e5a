// Takes the arguments of Executable.run apart.
#include "bindings/run_call.h"

#include <iterator>

#include "core/error.h"

namespace py = pybind11;

namespace rlx::bindings {

RunCall parse_run(PyObject* const* args, Py_ssize_t count, PyObject* names) {
  RunCall call;
  PyObject** const slots[] = {&call.feeds, &call.out, &call.state, &call.outputs, &call.stream,
                             &call.profiler};
  constexpr const char* slot_names[] = {"feeds", "out", "state", "outputs", "stream",
                                          "profiler"};
  constexpr size_t most = std::size(slot_names);
  if (size_t(count) > most) throw py::type_error("run() takes at most 6 arguments");
  for (Py_ssize_t i = 0; i < count; ++i) *slots[i] = args[i];
  for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); ++k) {
    PyObject* name = PyTuple_GET_ITEM(names, k);
    size_t s = 0;
    while (s < most && PyUnicode_CompareWithASCIIString(name, slot_names[s]) != 0) ++s;
    if (s == most || *slots[s]) {
      throw py::type_error("run(feeds, out=None, state=None, outputs=None, stream=None, "
                           "profiler=None)");
    }
    *slots[s] = args[count + k];
  }
  if (!call.feeds) throw py::type_error("run() needs feeds");
  for (PyObject** slot : slots) {
    if (*slot == Py_None) *slot = nullptr;
  }
  if (call.out && !PyDict_Check(call.out)) {
    throw Error(ErrorKind::input, "out must be a dict of arrays");
  }
  return call;
}

}  // namespace rlx::bindings
