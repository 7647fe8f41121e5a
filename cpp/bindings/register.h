// One register_x per binding file; module.cpp calls them in order.
#pragma once

#include <pybind11/pybind11.h>

namespace rlx::bindings {

void register_build_info(pybind11::module_& module);

}  // namespace rlx::bindings
