// The methods of _core.Executable for runs that are watched, and _core.Profiler.
#pragma once

#include "bindings/executable.h"
#include "exec/profile.h"

namespace rlx::bindings {

// Measures one run with the _core.Profiler that its caller gave, if any.
class Measured {
 public:
  explicit Measured(PyObject* profiler)
      : profiler_(profiler ? py::handle(profiler).cast<Profiler*>() : nullptr) {
    if (profiler_) profiler_->begin_run();
  }
  Observer* observer() const { return profiler_; }
  void end() const {
    if (profiler_) profiler_->end_run(1);
  }

 private:
  Profiler* const profiler_;
};

void define_observed_runs(py::module_& module,
                          py::class_<PyExecutable, std::shared_ptr<PyExecutable>>& executable);

}  // namespace rlx::bindings
