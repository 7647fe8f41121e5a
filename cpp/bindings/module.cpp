// The table of contents of rlx._core: one register_x per binding file, in order of dependence.
#include "bindings/register.h"

PYBIND11_MODULE(_core, module) {
  using namespace rlx::bindings;
  register_build_info(module);
  register_errors(module);
  register_prims(module);
  register_program(module);
  register_devices(module);
  register_user_kernels(module);
  register_faulty(module);
  register_executable(module);
  register_update(module);
}
