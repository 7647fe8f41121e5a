// The arguments of Executable.run, which Python hands over as a vector.
#pragma once

#include <pybind11/pybind11.h>

namespace rlx::bindings {

// None and what is not given are null.
struct RunCall {
  PyObject *feeds = nullptr, *out = nullptr, *state = nullptr, *outputs = nullptr;
  PyObject *stream = nullptr, *profiler = nullptr;
};

// Throws TypeError or Error(input) for arguments that do not fit.
RunCall parse_run(PyObject* const* args, Py_ssize_t count, PyObject* names);

}  // namespace rlx::bindings
