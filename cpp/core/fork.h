// Notices that the process was forked: threads, and locks that they held, do not exist in a child.
#pragma once

#include <cstdint>

namespace rlx {

// How many forks lie between the process that loaded rlx and this one. Whoever keeps threads,
// locks or library primitives compares it with the value at their making, and drops them
// (unfreed: another thread may have held them) when it has grown.
uint64_t fork_generation();

}  // namespace rlx
