// A Fourier transform of lines as passes over complex buffers of [lines, n].
#pragma once

#include "kernels/params/divisor.h"

namespace rlx::params {

struct Fft {
  const void* x = nullptr;
  void* y = nullptr;
  void* from = nullptr;  // pairs of the type computed in: real and imaginary part
  void* to = nullptr;
  long long lines = 0, n = 1;
  // Lines of x and y: [outer, points, inner, parts].
  long long inner = 1, x_points = 0, y_points = 0;
  int x_parts = 2, y_parts = 2;
  // A pass: x is [radix, rest, done], y [rest, radix, done].
  long long done = 1, radix = 2, rest = 1;
  bool inverse = false, onesided = false;
  // By chirps: the power of two that n is padded to, and the lines before the one of the filter.
  long long padded = 0, given = 0;
};

}  // namespace rlx::params
