// The names that element types have in kernel sources.
#pragma once

#include <string>

#include "core/dtype.h"

namespace rlx::cuda {

std::string storage_name(DType type);   // of an element in memory: "rlx::F16"
std::string compute_name(DType type);   // of a value of it in registers: "float"
DType compute_type(DType storage);      // the type that Regions compute `storage` in
std::string integer_name(size_t bytes); // an unsigned integer of that size, for copies
// "name=value", for KernelSpec::defines.
std::string define(const std::string& name, const std::string& value);
std::string define(const std::string& name, int64_t value);

}  // namespace rlx::cuda
