// A small Region as the steps of kernels/region_interpreted.cu.
#pragma once

#include <optional>

#include "cuda/jit.h"
#include "cuda/select/region_source.h"
#include "kernels/params/region_program.h"

namespace rlx::cuda {

// None where that kernel lacks something: types other than floats and truth values, coordinates,
// 64-bit indices, many steps. Pointers are those of region_source for the same spec.
std::optional<params::RegionProgram> region_program(const RegionSpec& spec);

// The one kernel that runs them all.
KernelSpec interpreter();

}  // namespace rlx::cuda
