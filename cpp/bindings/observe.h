// The methods of _core.Executable for runs that are watched.
#pragma once

#include "bindings/executable.h"

namespace rlx::bindings {

void define_observed_runs(py::class_<PyExecutable, std::shared_ptr<PyExecutable>>& executable);

}  // namespace rlx::bindings
