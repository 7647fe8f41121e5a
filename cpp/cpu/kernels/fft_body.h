// The passes of a mixed-radix transform (Stockham's order), vectorised over lines and points.
#pragma once

#include "cpu/kernels/fft.h"

namespace rlx::cpu {
namespace {

template <class T>
struct Pair {
  T re, im;
};

template <class T>
[[gnu::always_inline]] inline Pair<T> operator+(Pair<T> a, Pair<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
[[gnu::always_inline]] inline Pair<T> operator-(Pair<T> a, Pair<T> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class T>
[[gnu::always_inline]] inline Pair<T> operator*(Pair<T> a, Pair<T> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class T>
[[gnu::always_inline]] inline Pair<T> operator*(T a, Pair<T> b) { return {a * b.re, a * b.im}; }
// -i x.
template <class T>
[[gnu::always_inline]] inline Pair<T> turned(Pair<T> x) { return {x.im, -x.re}; }

template <int radix> struct Butterfly;

template <> struct Butterfly<2> {
  template <class T>
  [[gnu::always_inline]] static void run(Pair<T>* a) {
    const Pair<T> sum = a[0] + a[1], difference = a[0] - a[1];
    a[0] = sum, a[1] = difference;
  }
};

template <> struct Butterfly<3> {
  template <class T>
  [[gnu::always_inline]] static void run(Pair<T>* a) {
    const T sine = T(0.86602540378443864676);
    const Pair<T> sum = a[1] + a[2], middle = a[0] - T(0.5) * sum;
    const Pair<T> side = turned(sine * (a[1] - a[2]));
    a[0] = a[0] + sum, a[1] = middle + side, a[2] = middle - side;
  }
};

template <> struct Butterfly<4> {
  template <class T>
  [[gnu::always_inline]] static void run(Pair<T>* a) {
    const Pair<T> even = a[0] + a[2], odd = a[0] - a[2];
    const Pair<T> sum = a[1] + a[3], side = turned(a[1] - a[3]);
    a[0] = even + sum, a[1] = odd + side, a[2] = even - sum, a[3] = odd - side;
  }
};

template <> struct Butterfly<5> {
  template <class T>
  [[gnu::always_inline]] static void run(Pair<T>* a) {
    const T c1 = T(0.30901699437494742410), c2 = T(-0.80901699437494742410);
    const T s1 = T(0.95105651629515357212), s2 = T(0.58778525229247312917);
    const Pair<T> p = a[1] + a[4], q = a[2] + a[3], d = a[1] - a[4], e = a[2] - a[3];
    const Pair<T> u = a[0] + c1 * p + c2 * q, v = a[0] + c2 * p + c1 * q;
    const Pair<T> f = turned(s1 * d + s2 * e), g = turned(s2 * d - s1 * e);
    a[0] = a[0] + p + q, a[1] = u + f, a[2] = v + g, a[3] = v - g, a[4] = u - f;
  }
};

template <int radix, class T>
void fixed_pass(const FftPass& pass, const T* twiddles, int64_t stride, FftParts<const T> from,
                FftParts<T> to) {
  const T* twiddle = twiddles + pass.twiddles;
  const int64_t apart = stride * pass.rest;  // from one operand of a butterfly to the next
  for (int64_t p = 0; p < pass.rest; ++p, twiddle += 2 * (radix - 1)) {
    const T *__restrict re = from.re + stride * p, *__restrict im = from.im + stride * p;
    T *__restrict y_re = to.re + stride * radix * p, *__restrict y_im = to.im + stride * radix * p;
    Pair<T> w[radix];
    for (int k = 1; k < radix; ++k) w[k] = {twiddle[2 * k - 2], twiddle[2 * k - 1]};
    for (int64_t q = 0; q < stride; ++q) {
      Pair<T> a[radix];
      for (int k = 0; k < radix; ++k) a[k] = {re[q + apart * k], im[q + apart * k]};
      Butterfly<radix>::run(a);
      y_re[q] = a[0].re, y_im[q] = a[0].im;
      for (int k = 1; k < radix; ++k) {
        const Pair<T> b = a[k] * w[k];
        y_re[q + stride * k] = b.re, y_im[q + stride * k] = b.im;
      }
    }
  }
}

// Any radix up to 13: a sum for each output, over the radix' roots.
template <class T>
void plain_pass(const FftPass& pass, const T* twiddles, int64_t stride, FftParts<const T> from,
                FftParts<T> to) {
  const int radix = pass.radix;
  const T* twiddle = twiddles + pass.twiddles;
  const T* roots = twiddle + 2 * (radix - 1) * pass.rest;
  const int64_t apart = stride * pass.rest;
  for (int64_t p = 0; p < pass.rest; ++p, twiddle += 2 * (radix - 1)) {
    for (int k = 0; k < radix; ++k) {
      Pair<T> w[13];
      for (int j = 0; j < radix; ++j) {
        const int root = j * k % radix;
        w[j] = {roots[2 * root], roots[2 * root + 1]};
        if (k > 0) w[j] = w[j] * Pair<T>{twiddle[2 * k - 2], twiddle[2 * k - 1]};
      }
      const T *__restrict re = from.re + stride * p, *__restrict im = from.im + stride * p;
      T *__restrict y_re = to.re + stride * (radix * p + k);
      T *__restrict y_im = to.im + stride * (radix * p + k);
      for (int64_t q = 0; q < stride; ++q) {
        Pair<T> sum{T(0), T(0)};
        for (int j = 0; j < radix; ++j)
          sum = sum + Pair<T>{re[q + apart * j], im[q + apart * j]} * w[j];
        y_re[q] = sum.re, y_im[q] = sum.im;
      }
    }
  }
}

template <class T>
void fft_pass(const FftPass& pass, const T* twiddles, int64_t stride, FftParts<const T> from,
              FftParts<T> to) {
  switch (pass.radix) {
    case 2: return fixed_pass<2>(pass, twiddles, stride, from, to);
    case 3: return fixed_pass<3>(pass, twiddles, stride, from, to);
    case 4: return fixed_pass<4>(pass, twiddles, stride, from, to);
    case 5: return fixed_pass<5>(pass, twiddles, stride, from, to);
    default: return plain_pass(pass, twiddles, stride, from, to);
  }
}

constexpr FftKernels fft_kernels = {&fft_pass<float>, &fft_pass<double>};

}  // namespace
}  // namespace rlx::cpu
