// The inner loops of Reduce: how values of one type join running states of one kind.
#pragma once

#include <cstdint>

#include "core/cpuid.h"
#include "core/dtype.h"
#include "program/prims.h"

namespace rlx::cpu {

// A state is one element of array `a` and, where b_bytes is not 0, one of array `b`.
// `at` is the position of the first value along the reduction, for argmax and argmin.
struct ReduceLoops {
  size_t a_bytes = 0, b_bytes = 0;
  void (*start)(void* a, void* b, int64_t n) = nullptr;
  // n values join one state.
  void (*row)(void* a, void* b, const void* x, int64_t n, int64_t at) = nullptr;
  // One value joins each of n states.
  void (*column)(void* a, void* b, const void* x, int64_t n, int64_t at) = nullptr;
  // n states join n states of earlier positions.
  void (*merge)(void* a, void* b, const void* other_a, const void* other_b, int64_t n) = nullptr;
  // Results of n states that took `count` values each: the type reduced in, or int64 indices.
  void (*finish)(void* out, const void* a, const void* b, int64_t n, int64_t count) = nullptr;
};

// Loops of `kind` over compute type `type`; start is null where there are none.
ReduceLoops reduce_loops(ReduceKind kind, DType type, bool select_last_index);

template <Isa>
ReduceLoops reduce_loops_for(ReduceKind kind, DType type, bool select_last_index);

}  // namespace rlx::cpu
