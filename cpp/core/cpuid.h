// Which instruction sets and cache sizes this machine has; the only place that asks the CPU.
#pragma once

#include <cstdint>

namespace rlx {

// Levels that kernels are compiled for, each containing the ones before it.
enum class Isa { portable, avx2, avx512 };

struct CpuInfo {
  Isa isa = Isa::portable;    // the best level this CPU and its operating system support
  bool avx512_vnni = false;   // 8-bit dot products on top of Isa::avx512
  int64_t l1d_bytes = 32 << 10;
  int64_t l2_bytes = 512 << 10;  // per core
};

// What the machine has; asked once.
const CpuInfo& cpu_info();

// The level kernels must use now: cpu_info().isa unless limited.
Isa cpu_isa();

// True when 8-bit dot product instructions may be used at the level in force.
bool cpu_has_vnni();

// Lowers the level for the whole process (never above what the machine has). For RLX_CPU_ISA and
// tests. Packed weights belong to the level that packed them: set it before any are made.
void limit_cpu_isa(Isa highest);

}  // namespace rlx
