// The inner loops of Softmax, in float or double.
#pragma once

#include <cstdint>

#include "core/cpuid.h"

namespace rlx::cpu {

template <class T>
struct SoftmaxLoops {
  // A row of n values; y may be x. `log` gives the logarithm of the softmax.
  void (*row)(const T* x, T* y, int64_t n, bool log) = nullptr;
  // In place, along the first axis of values[extent][n]; top and total hold n values each.
  void (*columns)(T* values, int64_t extent, int64_t n, T* top, double* total,
                  bool log) = nullptr;
};

template <class T>
SoftmaxLoops<T> softmax_loops();

template <Isa, class T>
SoftmaxLoops<T> softmax_loops_for();

}  // namespace rlx::cpu
