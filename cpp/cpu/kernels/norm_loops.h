// The inner loops of Norm, in float or double.
#pragma once

#include <cstdint>

#include "core/cpuid.h"

namespace rlx::cpu {

// How values are normalised: ((x - shift) - rest) * factor * scale + bias, or + offset without
// vectors. shift + rest is the mean: a row of equal values gives exactly 0.
template <class T>
struct Normaliser {
  T shift = 0, rest = 0, factor = 1, offset = 0;
};

template <class T>
struct NormLoops {
  double (*sum)(const T* x, int64_t n) = nullptr;
  // The sum of (x - shift)^2.
  double (*squares)(const T* x, int64_t n, T shift) = nullptr;
  // scale and bias hold n values each, or are null. y may be x.
  void (*apply)(const T* x, T* y, int64_t n, const Normaliser<T>& by, const T* scale,
                const T* bias) = nullptr;
  // Sums of n channels over one place: of x - shift, and of its square.
  void (*channel_sums)(const T* x, int64_t n, const T* shift, double* sums,
                       double* squares) = nullptr;
  // y = ((x - shift) - rest) * factor + bias, each for its channel.
  void (*channel_apply)(const T* x, T* y, int64_t n, const T* shift, const T* rest,
                        const T* factor, const T* bias) = nullptr;
};

template <class T>
NormLoops<T> norm_loops();

template <Isa, class T>
NormLoops<T> norm_loops_for();

}  // namespace rlx::cpu
