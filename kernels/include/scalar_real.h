// Scalar functions on float and double, and on complex numbers of them.
#pragma once

#include "kernels/include/types.h"

// libm under names that a C++ compiler and NVRTC know without any header.
#if defined(__CUDACC_RTC__)
#define RLX_LIBM(name) ::name
#else
#define RLX_LIBM(name) __builtin_##name
#endif
#define RLX_LIBM_UNARY(name)                                  \
  RLX_FN float name(float x) { return RLX_LIBM(name##f)(x); } \
  RLX_FN double name(double x) { return RLX_LIBM(name)(x); }
#define RLX_LIBM_BINARY(name)                                             \
  RLX_FN float name(float a, float b) { return RLX_LIBM(name##f)(a, b); } \
  RLX_FN double name(double a, double b) { return RLX_LIBM(name)(a, b); }

namespace rlx::scalar {

RLX_LIBM_UNARY(ceil)
RLX_LIBM_UNARY(floor)
RLX_LIBM_UNARY(rint)
RLX_LIBM_UNARY(sqrt)
RLX_LIBM_UNARY(exp)
RLX_LIBM_UNARY(log)
RLX_LIBM_UNARY(log1p)
RLX_LIBM_UNARY(sin)
RLX_LIBM_UNARY(cos)
RLX_LIBM_UNARY(tan)
RLX_LIBM_UNARY(asin)
RLX_LIBM_UNARY(acos)
RLX_LIBM_UNARY(atan)
RLX_LIBM_UNARY(sinh)
RLX_LIBM_UNARY(cosh)
RLX_LIBM_UNARY(tanh)
RLX_LIBM_UNARY(asinh)
RLX_LIBM_UNARY(acosh)
RLX_LIBM_UNARY(atanh)
RLX_LIBM_UNARY(erf)
RLX_LIBM_UNARY(erfc)
RLX_LIBM_UNARY(fabs)
RLX_LIBM_BINARY(pow)
RLX_LIBM_BINARY(fmod)
RLX_LIBM_BINARY(copysign)
RLX_LIBM_BINARY(hypot)

template <Real T> RLX_FN T abs(T x) { return fabs(x); }
template <Real T> RLX_FN T neg(T x) { return -x; }
template <Real T> RLX_FN T sign(T x) { return x != x ? x : T((x > 0) - (x < 0)); }
template <Real T> RLX_FN T round(T x) { return rint(x); }  // half to even
template <Real T> RLX_FN T reciprocal(T x) { return T(1) / x; }
template <Real T> RLX_FN T rsqrt(T x) { return T(1) / sqrt(x); }
template <Real T> RLX_FN T sigmoid(T x) { return T(1) / (T(1) + exp(-x)); }
template <Real T> RLX_FN T silu(T x) { return x * sigmoid(x); }
// Neither overflows for large x nor loses small results.
template <Real T> RLX_FN T softplus(T x) { return (x > 0 ? x : T(0)) + log1p(exp(-fabs(x))); }
// x * (1 + erf(x / sqrt(2))) / 2 without the cancellation for negative x.
template <Real T> RLX_FN T gelu(T x) {
  return x * T(0.5) * erfc(x * T(-0.70710678118654752440));
}
// x * (1 + tanh(v)) / 2 = x * sigmoid(2v), v = sqrt(2 / pi) * (x + 0.044715 x^3).
template <Real T> RLX_FN T gelu_tanh(T x) {
  return x * sigmoid(T(1.59576912160573071176) * (x + T(0.044715) * x * x * x));
}

template <Real T> RLX_FN bool is_nan(T x) { return x != x; }
template <Real T> RLX_FN bool is_pos_inf(T x) { return x > 0 && x - x != 0; }
template <Real T> RLX_FN bool is_neg_inf(T x) { return x < 0 && x - x != 0; }

template <Real T> RLX_FN T add(T a, T b) { return a + b; }
template <Real T> RLX_FN T sub(T a, T b) { return a - b; }
template <Real T> RLX_FN T mul(T a, T b) { return a * b; }
template <Real T> RLX_FN T div(T a, T b) { return a / b; }
// A NaN on either side is the result.
template <Real T> RLX_FN T min(T a, T b) { return a < b || a != a ? a : b; }
template <Real T> RLX_FN T max(T a, T b) { return a > b || a != a ? a : b; }
// The remainder with the sign of the divisor.
template <Real T> RLX_FN T mod(T a, T b) {
  const T r = fmod(a, b);
  if (r == 0) return copysign(r, b);
  return (r < 0) != (b < 0) ? r + b : r;
}

template <class T> RLX_FN Complex<T> neg(Complex<T> x) { return {-x.re, -x.im}; }
template <class T> RLX_FN Complex<T> abs(Complex<T> x) { return {hypot(x.re, x.im), T(0)}; }
template <class T> RLX_FN Complex<T> add(Complex<T> a, Complex<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T> RLX_FN Complex<T> sub(Complex<T> a, Complex<T> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class T> RLX_FN Complex<T> mul(Complex<T> a, Complex<T> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
// Smith's method: scaled by the larger part of b, so that no square overflows.
template <class T> RLX_FN Complex<T> div(Complex<T> a, Complex<T> b) {
  if (fabs(b.re) >= fabs(b.im)) {
    const T ratio = b.im / b.re, size = b.re + b.im * ratio;
    return {(a.re + a.im * ratio) / size, (a.im - a.re * ratio) / size};
  }
  const T ratio = b.re / b.im, size = b.im + b.re * ratio;
  return {(a.re * ratio + a.im) / size, (a.im * ratio - a.re) / size};
}
template <class T> RLX_FN Complex<T> reciprocal(Complex<T> x) {
  return div(Complex<T>{T(1), T(0)}, x);
}
template <class T> RLX_FN bool eq(Complex<T> a, Complex<T> b) {
  return a.re == b.re && a.im == b.im;
}
template <class T> RLX_FN bool ne(Complex<T> a, Complex<T> b) { return !eq(a, b); }

}  // namespace rlx::scalar
