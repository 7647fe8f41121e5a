// One register_x per binding file; module.cpp calls them in order.
#pragma once

#include <pybind11/pybind11.h>

namespace rlx::bindings {

void register_build_info(pybind11::module_& module);
void register_executable(pybind11::module_& module);
void register_user_kernels(pybind11::module_& module);
void register_update(pybind11::module_& module);
void register_devices(pybind11::module_& module);
void register_faulty(pybind11::module_& module);
void register_errors(pybind11::module_& module);
void register_prims(pybind11::module_& module);
void register_program(pybind11::module_& module);
void register_program_tables(pybind11::module_& structs);
void register_program_stages(pybind11::module_& structs);

}  // namespace rlx::bindings
