// Bodies of the loops of Norm; compiled once for each instruction set.
#pragma once

#include "cpu/kernels/norm_loops.h"
#include "cpu/kernels/wide.h"

namespace rlx::cpu {
namespace {

// In double throughout: equal values then have exactly themselves as their mean.
template <class T>
double sum_of(const T* x, int64_t n) {
  return sum_in_double(x, n, [](auto v) { return v; });
}

template <class T>
double squares_of(const T* x, int64_t n, T shift) {
  using W = Wide<T>;
  double total = 0;
  int64_t i = 0;
  while (i + 2 * W::lanes <= n) {
    typename W::Vector a = {}, b = {};
    const int64_t end = n - i < sum_block ? n : i + sum_block;
    for (; i + 2 * W::lanes <= end; i += 2 * W::lanes) {
      const auto low = W::load(x + i) - shift, high = W::load(x + i + W::lanes) - shift;
      a += low * low;
      b += high * high;
    }
    total += double(W::sum(a + b));
  }
  for (; i < n; ++i) total += double(x[i] - shift) * double(x[i] - shift);
  return total;
}

template <class T>
void apply_norm(const T* x, T* y, int64_t n, const Normaliser<T>& by, const T* scale,
                const T* bias) {
  const T shift = by.shift, rest = by.rest, factor = by.factor, offset = by.offset;
  if (scale && bias) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = ((x[i] - shift) - rest) * factor * scale[i] + bias[i];
  } else if (scale) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = ((x[i] - shift) - rest) * factor * scale[i];
  } else if (bias) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = ((x[i] - shift) - rest) * factor + bias[i];
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = ((x[i] - shift) - rest) * factor + offset;
  }
}

template <class T>
void channel_sums_of(const T* x, int64_t n, const T* shift, double* sums, double* squares) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const double d = double(x[i]) - double(shift[i]);
    sums[i] += d;
    squares[i] += d * d;
  }
}

template <class T>
void apply_channels(const T* x, T* y, int64_t n, const T* shift, const T* rest, const T* factor,
                    const T* bias) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = ((x[i] - shift[i]) - rest[i]) * factor[i] + bias[i];
}

template <class T>
NormLoops<T> make_norm_loops() {
  return {&sum_of<T>, &squares_of<T>, &apply_norm<T>, &channel_sums_of<T>, &apply_channels<T>};
}

}  // namespace
}  // namespace rlx::cpu
