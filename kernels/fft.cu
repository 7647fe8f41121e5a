// Fourier transforms of any length: Stockham passes, one for each prime factor (4 for two twos).
#include "kernels/include/element.h"
#include "kernels/include/index.h"
#include "kernels/include/scalar_ops.h"
#include "kernels/params/fft.h"

namespace {

using Index = unsigned long long;
using S = RLX_T;
using W = double;  // what should be zero is tested against 1e-7
struct Pair {
  W re, im;
};

// Part `part` of point j of a line of x; 0 beyond the input and for a part it lacks.
RLX_FN W input(const rlx::params::Fft& p, Index line, long long j, int part) {
  if (j >= p.x_points || part >= p.x_parts) return W(0);
  const Index outer = line / Index(p.inner), in = line % Index(p.inner);
  const Index at = ((outer * Index(p.x_points) + Index(j)) * Index(p.inner) + in) *
                       Index(p.x_parts) + Index(part);
  return W(rlx::load(static_cast<const S*>(p.x) + at));
}

}  // namespace

#if RLX_FORM == 0
// The points of each line; an inverse transform is a forward one of the conjugate.
extern "C" __global__ void fft(const rlx::params::Fft p) {
  const Index count = Index(p.lines) * Index(p.n);
  for (Index i = rlx::thread_rank(); i < count; i += rlx::thread_count()) {
    const Index line = i / Index(p.n);
    const long long k = (long long)(i % Index(p.n));
    Pair value;
    if (p.inverse && p.onesided) {  // the other half of the spectrum of a real line
      const bool mirrored = 2 * k > p.n;
      const long long at = mirrored ? p.n - k : k;
      value.re = input(p, line, at, 0);
      value.im = k == 0 || 2 * k == p.n ? W(0) : input(p, line, at, 1);
      if (mirrored) value.im = -value.im;
    } else {
      value = {input(p, line, k, 0), input(p, line, k, 1)};
    }
    if (p.inverse) value.im = -value.im;
    static_cast<Pair*>(p.to)[i] = value;
  }
}
#elif RLX_FORM == 1
extern "C" __global__ void fft(const rlx::params::Fft p) {
  const Index count = Index(p.lines) * Index(p.n), rest = Index(p.rest), done = Index(p.done);
  const Index turn = done * Index(p.radix);
  for (Index i = rlx::thread_rank(); i < count; i += rlx::thread_count()) {
    const Index line = i / Index(p.n), at = i % Index(p.n);
    const Index row = at / rest, k = at % rest;  // row j + s * done
    const Pair* x = static_cast<const Pair*>(p.from) +
                    (line * Index(p.n) + row % done * Index(p.radix) * rest + k);
    W re = 0, im = 0;
    for (Index q = 0; q < Index(p.radix); ++q) {
      const double angle = -6.283185307179586 * (double(q * row % turn) / double(turn));
      const W c = W(rlx::scalar::cos(angle)), s = W(rlx::scalar::sin(angle));
      const Pair value = x[q * rest];
      re += value.re * c - value.im * s;
      im += value.re * s + value.im * c;
    }
    static_cast<Pair*>(p.to)[i] = {re, im};
  }
}
#else
extern "C" __global__ void fft(const rlx::params::Fft p) {
  const Index count = Index(p.lines) * Index(p.y_points);
  const W scale = p.inverse ? W(1) / W(p.n) : W(1);
  for (Index i = rlx::thread_rank(); i < count; i += rlx::thread_count()) {
    const Index line = i / Index(p.y_points), k = i % Index(p.y_points);
    const Index outer = line / Index(p.inner), in = line % Index(p.inner);
    const Pair value = static_cast<const Pair*>(p.from)[line * Index(p.n) + k];
    S* y = static_cast<S*>(p.y) +
           ((outer * Index(p.y_points) + k) * Index(p.inner) + in) * Index(p.y_parts);
    rlx::store(y, rlx::ComputeOf<S>(value.re * scale));
    if (p.y_parts > 1) {
      rlx::store(y + 1, rlx::ComputeOf<S>((p.inverse ? -value.im : value.im) * scale));
    }
  }
}
#endif
