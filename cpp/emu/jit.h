// Kernels for the emulator: the very same sources, compiled by the C++ compiler of the build.
#pragma once

#include <memory>

#include "cuda/jit.h"

namespace rlx::emu {

std::unique_ptr<cuda::Jit> make_jit(cuda::Driver& driver);

}  // namespace rlx::emu
