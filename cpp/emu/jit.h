// Kernels for the emulator: the very same sources, compiled by the C++ compiler of the build.
#pragma once

#include <memory>

#include "cuda/jit.h"

namespace rlx::emu {

// late: generated Regions are compiled when they first run, and until then not ready.
std::unique_ptr<cuda::Jit> make_jit(cuda::Driver& driver, bool late);

}  // namespace rlx::emu
