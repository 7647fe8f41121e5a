// _core.update_weights: other bytes for the constants of Executables, all at once.
#include <pybind11/stl.h>

#include "bindings/executable.h"
#include "bindings/interpreter_lock.h"
#include "bindings/register.h"

namespace py = pybind11;

namespace rlx::bindings {
namespace {

using Executables = std::vector<std::shared_ptr<PyExecutable>>;

// Which of them took the constants of their program; the others are as they were.
std::vector<bool> update_weights(const Executables& executables,
                                 const std::vector<ProgramPtr>& programs) {
  const Unlocked unlocked;
  std::vector<bool> took;
  std::vector<std::unique_ptr<Executable::Pause>> pauses;
  for (size_t i = 0; i < executables.size(); ++i) {
    Executable& executable = executables[i]->executable;
    pauses.push_back(std::make_unique<Executable::Pause>(executable));
    took.push_back(executable.can_update(*programs.at(i)));
  }
  for (size_t i = 0; i < executables.size(); ++i) {
    if (took[i]) executables[i]->executable.update(*programs[i]);
  }
  return took;
}

}  // namespace

void register_update(py::module_& module) {
  using namespace py::literals;
  module.def("update_weights", &update_weights, "executables"_a, "programs"_a,
             "Gives each Executable the constants of a Program of its form, between runs; whether "
             "each could take them.");
}

}  // namespace rlx::bindings
