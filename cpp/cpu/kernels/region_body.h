// Bodies of the loops over scalar functions; compiled once for each instruction set.
#pragma once

#include <cstring>

#include "cpu/kernels/region_loops.h"
#include "cpu/kernels/region_types.h"
#include "cpu/kernels/region_vector.h"
#include "cpu/kernels/vecmath.h"

namespace rlx::cpu {
namespace {

// A vector function over n floats. The last vector overlaps the one before it: it is read first,
// so that dst may be a.
template <class F>
void vector_unary(void* dst, const void* a, const void*, const void*, int64_t n) {
  auto* out = static_cast<float*>(dst);
  auto* x = static_cast<const float*>(a);
  if (n < lanes) {
    const Vector y = F{}(load_some(x, n));
    for (int64_t i = 0; i < n; ++i) out[i] = y[i];
    return;
  }
  const Vector last = load_vector(x + n - lanes);
  for (int64_t i = 0; i + lanes <= n; i += lanes) {
    const Vector y = F{}(load_vector(x + i));
    std::memcpy(out + i, &y, sizeof y);
  }
  const Vector y = F{}(last);
  std::memcpy(out + n - lanes, &y, sizeof y);
}

// max(x, 0) + log(1 + t), t = exp(-|x|); the last term is what 1 + t lost by rounding.
Vector softplus(Vector x) {
  const Vector t = vecmath::exp(-vecmath::abs(x)), u = t + 1.0f;
  const Vector rest = vecmath::log(u) + (t - (u - 1.0f)) / u;
  return (x > 0.0f ? x : Vector{}) + rest;
}

template <class T, class F>
void unary(void* dst, const void* a, const void*, const void*, int64_t n) {
  using R = decltype(F{}(T{}));
  auto* out = static_cast<Memory<R>*>(dst);
  auto* x = static_cast<const Memory<T>*>(a);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = F{}(T(x[i]));
}

template <class T, class F, bool scalar_a, bool scalar_b>
void binary(void* dst, const void* a, const void* b, const void*, int64_t n) {
  using R = decltype(F{}(T{}, T{}));
  auto* out = static_cast<Memory<R>*>(dst);
  auto* x = static_cast<const Memory<T>*>(a);
  auto* y = static_cast<const Memory<T>*>(b);
  const T x0 = T(x[0]), y0 = T(y[0]);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    out[i] = F{}(scalar_a ? x0 : T(x[i]), scalar_b ? y0 : T(y[i]));
  }
}

template <class T, bool scalar_a, bool scalar_b>
void choose(void* dst, const void* condition, const void* a, const void* b, int64_t n) {
  auto* out = static_cast<Memory<T>*>(dst);
  auto* c = static_cast<const uint8_t*>(condition);
  auto* x = static_cast<const Memory<T>*>(a);
  auto* y = static_cast<const Memory<T>*>(b);
  const Memory<T> x0 = x[0], y0 = y[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const Memory<T> chosen = scalar_a ? x0 : x[i], other = scalar_b ? y0 : y[i];
    out[i] = c[i] != 0 ? chosen : other;
  }
}

template <class T, class F>
Loop pick_unary(unsigned scalars, F) {
  if constexpr (requires(F f, T x) { f(x); }) {
    return scalars == 0 ? &unary<T, F> : nullptr;
  }
  return nullptr;
}

template <class T, class F>
Loop pick_binary(unsigned scalars, F) {
  if constexpr (requires(F f, T x) { f(x, x); }) {
    switch (scalars) {
      case 0: return &binary<T, F, false, false>;
      case 1: return &binary<T, F, true, false>;
      case 2: return &binary<T, F, false, true>;
    }
  }
  return nullptr;
}

template <class T>
Loop pick_select(unsigned scalars) {
  switch (scalars) {
    case 0: return &choose<T, false, false>;
    case 2: return &choose<T, true, false>;
    case 4: return &choose<T, false, true>;
    case 6: return &choose<T, true, true>;
  }
  return nullptr;
}

// The float functions that run on whole vectors; null for the others, whose plain loops do.
template <class F>
Loop vector_loop(F) {
  return &vector_unary<F>;
}

Loop pick_vector(ScalarOp op) {
  switch (op) {
    case ScalarOp::exp: return vector_loop([](Vector x) { return vecmath::exp(x); });
    case ScalarOp::log: return vector_loop([](Vector x) { return vecmath::log(x); });
    case ScalarOp::tanh: return vector_loop([](Vector x) { return vecmath::tanh(x); });
    case ScalarOp::erf: return vector_loop([](Vector x) { return vecmath::erf(x); });
    case ScalarOp::sigmoid: return vector_loop([](Vector x) { return vecmath::sigmoid(x); });
    case ScalarOp::silu: return vector_loop([](Vector x) { return vecmath::silu(x); });
    case ScalarOp::gelu: return vector_loop([](Vector x) { return vecmath::gelu_erf(x); });
    case ScalarOp::gelu_tanh: return vector_loop([](Vector x) { return vecmath::gelu_tanh(x); });
    case ScalarOp::softplus: return vector_loop([](Vector x) { return softplus(x); });
    default: return nullptr;
  }
}

// The loop for compute type T of each row of the table.
template <class T>
Loop pick(ScalarOp op, unsigned scalars) {
  if (op == ScalarOp::select) return pick_select<T>(scalars);
  if constexpr (std::is_same_v<T, float>) {
    if (Loop loop = scalars == 0 ? pick_vector(op) : nullptr) return loop;
  }
  switch (op) {
#define RLX_ROW(id, name, arity)                                                            \
  case ScalarOp::id:                                                                        \
    if constexpr (arity == 1) {                                                             \
      return pick_unary<T>(scalars, [](auto x) requires requires { scalar::id(x); } {          \
        return scalar::id(x);                                                               \
      });                                                                                   \
    } else if constexpr (arity == 2) {                                                      \
      return pick_binary<T>(scalars, [](auto x, auto y) requires requires { scalar::id(x, y); } { \
        return scalar::id(x, y);                                                            \
      });                                                                                   \
    } else {                                                                                \
      return nullptr;                                                                       \
    }
    RLX_SCALAR_OPS(RLX_ROW)
#undef RLX_ROW
  }
  return nullptr;
}

}  // namespace
}  // namespace rlx::cpu
