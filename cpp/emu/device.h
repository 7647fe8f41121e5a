// The emulator as a Device: kernels of the CUDA backend on the host's memory, one step at a time.
#pragma once

#include <memory>

#include "backend.h"

namespace rlx::emu {

// "emu" or "emu:descending", the order in which the fibers of a block go on.
std::shared_ptr<const Device> make_device(const std::string& name);

}  // namespace rlx::emu
