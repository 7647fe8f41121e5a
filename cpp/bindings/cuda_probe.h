// What of CUDA this machine has; found out when first asked.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <vector>

namespace rlx::bindings {

// Tells the loader where Python's packages lie; once.
void find_cuda();
// Why device="cuda" cannot work here; empty when it can.
std::string cuda_reason();
std::vector<int> usable_gpus();
// _core.cuda_probe() and what else there is to ask without a Session.
void register_cuda_probe(pybind11::module_& module);

}  // namespace rlx::bindings
