// One launch as the emulator and the library of a kernel both know it.
#pragma once

namespace rlx::emu {

struct Launch {
  unsigned grid[3], block[3];
  unsigned shared;
  const void* params;
  unsigned long params_bytes;
  bool reverse;  // fibers and blocks in descending order
};

}  // namespace rlx::emu
