// What each instruction set contributes to pooling: kernels over rows of the output.
// Known to pool.cpp and the pool_<isa>.cpp files only.
#pragma once

#include "cpu/kernels/pool.h"

namespace rlx::cpu {

// Computes output rows [begin, end) of (batch, out 0, out 1); channels last.
using PoolChannels = void (*)(const PoolShape& shape, const void* x, void* y, int64_t begin,
                              int64_t end);
// Computes output rows [begin, end) of (batch, channel, out 0, out 1); channels first.
using PoolPlanes = PoolChannels;

struct PoolEntry {
  PoolKind kind;
  DType dtype;
  PoolChannels channels;
  PoolPlanes planes;
};

struct PoolTable {
  const PoolEntry* entries;
  size_t count;
};

extern const PoolTable pool_table_portable, pool_table_avx2, pool_table_avx512;

}  // namespace rlx::cpu
