// What changes while a RegionProgram runs; lives at the start of its scratch memory.
#pragma once

#include "cpu/kernels/region.h"

namespace rlx::cpu {

constexpr int max_region_axes = 16;

struct RegionProgram::Frame {
  // The box that a copied source holds, so that a broadcast one is copied once.
  struct Seen {
    const std::byte* from;
    int64_t n;
  };

  const void* const* inputs;
  void* const* outputs;
  const void* first;    // stands for input 0
  int64_t done;         // rows: elements of this call that are finished
  int64_t row;          // that index stands at; -1: none
  int64_t index[max_region_axes];
  Seen* seen;           // one for each source
  void** slots;
};

}  // namespace rlx::cpu
