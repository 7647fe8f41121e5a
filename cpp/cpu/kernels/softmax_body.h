// Bodies of the loops of Softmax; compiled once for each instruction set.
#pragma once

#include <limits>
#include <type_traits>

#include "cpu/kernels/exp_falling.h"
#include "cpu/kernels/softmax_loops.h"
#include "cpu/kernels/wide.h"
#include "kernels/include/scalar_ops.h"

namespace rlx::cpu {
namespace {

// The greater value; NaN wins.
template <class V>
V greater(V x, V y) {
  return (x > y) | (x != x) ? x : y;
}

template <class T>
T row_top(const T* x, int64_t n) {
  using W = Wide<T>;
  T top = -std::numeric_limits<T>::infinity();
  int64_t i = 0;
  if (n >= 2 * W::lanes) {
    auto a = W::load(x), b = W::load(x + W::lanes);
    for (i = 2 * W::lanes; i + 2 * W::lanes <= n; i += 2 * W::lanes) {
      a = greater(W::load(x + i), a);
      b = greater(W::load(x + i + W::lanes), b);
    }
    const auto both = greater(a, b);
    for (int k = 0; k < W::lanes; ++k) top = greater(T(both[k]), top);
  }
  for (; i < n; ++i) top = greater(x[i], top);
  return top;
}

// The sum of exp(x - top), with the terms kept in y unless it is null.
inline double exp_row(const float* x, float* y, int64_t n, float top) {
  using W = Wide<float>;
  constexpr int lanes = W::lanes;
  double total = 0;
  int64_t i = 0;
  while (i + lanes <= n) {
    W::Vector part = {};
    const int64_t end = n - i < sum_block ? n : i + sum_block;
    for (; i + lanes <= end; i += lanes) {
      const W::Vector e = vecmath::exp_falling(W::load(x + i) - top);
      if (y) W::store(y + i, e);
      part += e;
    }
    total += double(W::sum(part));
  }
  if (i < n) {
    const W::Vector e = vecmath::exp_falling(W::load_some(x + i, n - i, 0.0f) - top);
    for (int64_t k = 0; i + k < n; ++k) total += double(e[k]);
    if (y) W::store_some(y + i, e, n - i);
  }
  return total;
}

inline double exp_row(const double* x, double* y, int64_t n, double top) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double e = scalar::exp(x[i] - top);
    if (y) y[i] = e;
    total += e;
  }
  return total;
}

template <class T>
void softmax_row(const T* x, T* y, int64_t n, bool log) {
  const T top = row_top(x, n);
  if (log) {
    const T rest = T(scalar::log(exp_row(x, static_cast<T*>(nullptr), n, top)));
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - top) - rest;
    return;
  }
  const T scale = T(1.0 / exp_row(x, y, n, top));
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] *= scale;
}

// values = exp(values - top), and their sum joins total; with log the values stay.
template <class T>
void exp_column(T* values, int64_t n, const T* top, double* total, bool log) {
  using W = Wide<T>;
  constexpr int64_t block = 8 * W::lanes;
  T terms[block];
  for (int64_t from = 0; from < n; from += block) {
    const int64_t count = n - from < block ? n - from : block;
    const T *x = values + from, *t = top + from;
    int64_t i = 0;
    if constexpr (std::is_same_v<T, float>) {
      for (; i + W::lanes <= count; i += W::lanes) {
        W::store(terms + i, vecmath::exp_falling(W::load(x + i) - W::load(t + i)));
      }
      if (i < count) {
        const auto rest = W::load_some(x + i, count - i, 0) - W::load_some(t + i, count - i, 0);
        W::store(terms + i, vecmath::exp_falling(rest));
      }
    } else {
      for (; i < count; ++i) terms[i] = scalar::exp(x[i] - t[i]);
    }
#pragma GCC ivdep
    for (i = 0; i < count; ++i) total[from + i] += double(terms[i]);
    if (!log) std::memcpy(values + from, terms, size_t(count) * sizeof(T));
  }
}

template <class T>
void softmax_columns(T* values, int64_t extent, int64_t n, T* top, double* total, bool log) {
  for (int64_t i = 0; i < n; ++i) top[i] = -std::numeric_limits<T>::infinity(), total[i] = 0;
  for (int64_t row = 0; row < extent; ++row) {
    const T* x = values + row * n;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) top[i] = greater(x[i], top[i]);
  }
  for (int64_t row = 0; row < extent; ++row) exp_column(values + row * n, n, top, total, log);
  for (int64_t i = 0; i < n; ++i) total[i] = log ? scalar::log(total[i]) : 1.0 / total[i];
  for (int64_t row = 0; row < extent; ++row) {
    T* y = values + row * n;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      y[i] = log ? (y[i] - top[i]) - T(total[i]) : y[i] * T(total[i]);
    }
  }
}

template <class T>
SoftmaxLoops<T> make_softmax_loops() {
  return {&softmax_row<T>, &softmax_columns<T>};
}

}  // namespace
}  // namespace rlx::cpu
