// The CPU's Arena: address space reserved once, memory backed as it grows.
#pragma once

#include <memory>

#include "backend.h"

namespace rlx::cpu {

std::unique_ptr<Arena> make_arena();

}  // namespace rlx::cpu
