// Fourier transforms of any length: Stockham passes, one for each prime factor (4 for two twos).
// A length with a large prime factor is a convolution with a chirp (Bluestein), whose transforms
// have a power of two.
#include "kernels/include/element.h"
#include "kernels/include/index.h"
#include "kernels/include/scalar_ops.h"
#include "kernels/params/fft.h"

namespace {

using Index = unsigned long long;
using S = RLX_T;
using W = rlx::ComputeOf<S>;

template <class T> struct Pair {
  T re, im;
};
using Point = Pair<W>;

// Never fused into a sum: what cancels then cancels in every compiler's order.
#if defined(__CUDACC_RTC__)
RLX_FN float product(float a, float b) { return __fmul_rn(a, b); }
RLX_FN double product(double a, double b) { return __dmul_rn(a, b); }
#else
template <class T> RLX_FN T product(T a, T b) { return a * b; }
#endif

RLX_FN Point operator+(Point a, Point b) { return {a.re + b.re, a.im + b.im}; }
RLX_FN Point operator-(Point a, Point b) { return {a.re - b.re, a.im - b.im}; }
RLX_FN Point operator*(W a, Point b) { return {product(a, b.re), product(a, b.im)}; }
RLX_FN Point operator*(Point a, Point b) {
  return {product(a.re, b.re) - product(a.im, b.im), product(a.re, b.im) + product(a.im, b.re)};
}
RLX_FN Point turned(Point x) { return {x.im, -x.re}; }  // -i x

// exp(-2 pi i k / n), k < n; the angle is taken from the nearest eighth of the circle, which keeps
// the roots exact where they are and equal where they should be.
RLX_FN Pair<double> root(Index k, Index n) {
  const double turn = 6.283185307179586 / double(n);
  const bool mirrored = 2 * k > n;
  if (mirrored) k = n - k;
  Pair<double> w;
  if (4 * k > n) {
    const double angle = turn * (double(n) / 2 - double(k));
    w = {-rlx::scalar::cos(angle), -rlx::scalar::sin(angle)};
  } else if (8 * k > n) {
    const double angle = turn * (double(n) / 4 - double(k));
    w = {rlx::scalar::sin(angle), -rlx::scalar::cos(angle)};
  } else {
    w = {rlx::scalar::cos(turn * double(k)), -rlx::scalar::sin(turn * double(k))};
  }
  if (mirrored) w.im = -w.im;
  return w;
}

// Part `part` of point j of a line of x; 0 beyond the input and for a part it lacks.
RLX_FN W input(const rlx::params::Fft& p, Index line, long long j, int part) {
  if (j >= p.x_points || part >= p.x_parts) return W(0);
  const Index outer = line / Index(p.inner), in = line % Index(p.inner);
  const Index at = ((outer * Index(p.x_points) + Index(j)) * Index(p.inner) + in) *
                       Index(p.x_parts) + Index(part);
  return W(rlx::load(static_cast<const S*>(p.x) + at));
}

// The transform of RLX_RADIX points, in place.
RLX_FN void butterfly(Point* a) {
#if RLX_RADIX == 2
  const Point sum = a[0] + a[1];
  a[1] = a[0] - a[1], a[0] = sum;
#elif RLX_RADIX == 3
  const Point sum = a[1] + a[2], middle = a[0] - W(0.5) * sum;
  const Point side = turned(W(0.86602540378443864676) * (a[1] - a[2]));
  a[0] = a[0] + sum, a[1] = middle + side, a[2] = middle - side;
#elif RLX_RADIX == 4
  const Point even = a[0] + a[2], odd = a[0] - a[2];
  const Point sum = a[1] + a[3], side = turned(a[1] - a[3]);
  a[0] = even + sum, a[1] = odd + side, a[2] = even - sum, a[3] = odd - side;
#elif RLX_RADIX == 5
  const W c1 = W(0.30901699437494742410), c2 = W(-0.80901699437494742410);
  const W s1 = W(0.95105651629515357212), s2 = W(0.58778525229247312917);
  const Point p = a[1] + a[4], q = a[2] + a[3], d = a[1] - a[4], e = a[2] - a[3];
  const Point u = a[0] + c1 * p + c2 * q, v = a[0] + c2 * p + c1 * q;
  const Point f = turned(s1 * d + s2 * e), g = turned(s2 * d - s1 * e);
  a[0] = a[0] + p + q, a[1] = u + f, a[2] = v + g, a[3] = v - g, a[4] = u - f;
#endif
}

}  // namespace

#if RLX_FORM == 0
// The points of each line; an inverse transform is a forward one of the conjugate.
extern "C" __global__ void fft(const rlx::params::Fft p) {
  const Index count = Index(p.lines) * Index(p.n);
  for (Index i = rlx::thread_rank(); i < count; i += rlx::thread_count()) {
    const Index line = i / Index(p.n);
    const long long k = (long long)(i % Index(p.n));
    Point value;
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
    static_cast<Point*>(p.to)[i] = value;
  }
}
#elif RLX_FORM == 1 && RLX_RADIX
// A butterfly for each thread, its results turned by their twiddles.
extern "C" __global__ void fft(const rlx::params::Fft p) {
  constexpr int radix = RLX_RADIX;
  const Index each = Index(p.n) / radix, done = Index(p.done), rest = Index(p.rest);
  const Index count = Index(p.lines) * each;
  for (Index i = rlx::thread_rank(); i < count; i += rlx::thread_count()) {
    const Index line = i / each, at = i % each, group = at / done, q = at % done;
    const Point* x = static_cast<const Point*>(p.from) + (line * Index(p.n) + at);
    Point* y = static_cast<Point*>(p.to) + (line * Index(p.n) + radix * group * done + q);
    Point a[radix];
#pragma unroll
    for (int j = 0; j < radix; ++j) a[j] = x[Index(j) * rest * done];
    butterfly(a);
    y[0] = a[0];
#pragma unroll
    for (int k = 1; k < radix; ++k) {
      const Pair<double> w = root(group * Index(k), radix * rest);
      y[Index(k) * done] = a[k] * Point{W(w.re), W(w.im)};
    }
  }
}
#elif RLX_FORM == 1
// A result of a large prime radix for each thread.
extern "C" __global__ void fft(const rlx::params::Fft p) {
  const Index count = Index(p.lines) * Index(p.n), rest = Index(p.rest), done = Index(p.done);
  const Index radix = Index(p.radix), turn = radix * rest;
  for (Index i = rlx::thread_rank(); i < count; i += rlx::thread_count()) {
    const Index line = i / Index(p.n), at = i % Index(p.n);
    const Index q = at % done, k = at / done % radix, group = at / done / radix;
    const Point* x = static_cast<const Point*>(p.from) +
                     (line * Index(p.n) + group * done + q);
    double re = 0, im = 0;
    for (Index j = 0; j < radix; ++j) {
      const Pair<double> w = root(k * (j * rest + group) % turn, turn);
      const Point value = x[j * rest * done];
      re += double(value.re) * w.re - double(value.im) * w.im;
      im += double(value.re) * w.im + double(value.im) * w.re;
    }
    static_cast<Point*>(p.to)[i] = {W(re), W(im)};
  }
}
#elif RLX_FORM == 3
// Points times the chirp, padded with zeros; the line behind them is the filter.
extern "C" __global__ void fft(const rlx::params::Fft p) {
  const Index n = Index(p.n), padded = Index(p.padded);
  const Index count = Index(p.given + 1) * padded;
  for (Index i = rlx::thread_rank(); i < count; i += rlx::thread_count()) {
    const Index line = i / padded, at = i % padded;
    const bool filter = line == Index(p.given);
    const Index j = filter && at > padded - n ? padded - at : at;
    Point value = {W(0), W(0)};
    if (j < n) {
      const Pair<double> w = root(j * j % (2 * n), 2 * n);
      if (filter) value = {W(w.re), W(-w.im)};
      else value = static_cast<const Point*>(p.from)[line * n + j] * Point{W(w.re), W(w.im)};
    }
    static_cast<Point*>(p.to)[i] = value;
  }
}
#elif RLX_FORM == 4
// The conjugate of spectrum times filter: what a forward transform turns back.
extern "C" __global__ void fft(const rlx::params::Fft p) {
  const Index padded = Index(p.padded), count = Index(p.given) * padded;
  const Point* x = static_cast<const Point*>(p.from);
  for (Index i = rlx::thread_rank(); i < count; i += rlx::thread_count()) {
    Point value = x[i] * x[count + i % padded];
    value.im = -value.im;
    static_cast<Point*>(p.to)[i] = value;
  }
}
#elif RLX_FORM == 5
// The n points of each line, freed of the chirp.
extern "C" __global__ void fft(const rlx::params::Fft p) {
  const Index n = Index(p.n), count = Index(p.given) * n;
  const W scale = W(1) / W(p.padded);
  for (Index i = rlx::thread_rank(); i < count; i += rlx::thread_count()) {
    const Index line = i / n, k = i % n;
    Point value = scale * static_cast<const Point*>(p.from)[line * Index(p.padded) + k];
    value.im = -value.im;
    const Pair<double> w = root(k * k % (2 * n), 2 * n);
    static_cast<Point*>(p.to)[i] = value * Point{W(w.re), W(w.im)};
  }
}
#else
extern "C" __global__ void fft(const rlx::params::Fft p) {
  const Index count = Index(p.lines) * Index(p.y_points);
  const W scale = p.inverse ? W(1) / W(p.n) : W(1);
  for (Index i = rlx::thread_rank(); i < count; i += rlx::thread_count()) {
    const Index line = i / Index(p.y_points), k = i % Index(p.y_points);
    const Index outer = line / Index(p.inner), in = line % Index(p.inner);
    Point value = static_cast<const Point*>(p.from)[line * Index(p.n) + k];
    // Of real points their sum and their alternating sum are real.
    if (p.x_parts == 1 && (k == 0 || 2 * k == Index(p.n))) value.im = W(0);
    S* y = static_cast<S*>(p.y) +
           ((outer * Index(p.y_points) + k) * Index(p.inner) + in) * Index(p.y_parts);
    rlx::store(y, value.re * scale);
    if (p.y_parts > 1) rlx::store(y + 1, (p.inverse ? -value.im : value.im) * scale);
  }
}
#endif
