// Loops of the extremes of Reduce and of their indices; compiled once for each instruction set.
#pragma once

#include <cstdint>
#include <limits>

#include "cpu/kernels/reduce_loops.h"
#include "cpu/kernels/wide.h"
#include "kernels/include/scalar_ops.h"

namespace rlx::cpu {
namespace {

using scalar::Real;

// Least or greatest value; NaN wins over numbers.
template <class T, bool greatest>
struct Extreme {
  using Value = T;
  using A = T;
  using B = void;

  static constexpr T nothing() {
    using Limits = std::numeric_limits<T>;
    if constexpr (Real<T>) return greatest ? -Limits::infinity() : Limits::infinity();
    return greatest ? Limits::lowest() : Limits::max();
  }
  template <class V>
  static V better(V x, V y) {
    if constexpr (greatest) return (x > y) | (x != x) ? x : y;
    return (x < y) | (x != x) ? x : y;
  }
  static T of(const T* x, int64_t n) {
    using W = Wide<T>;
    T best = nothing();
    int64_t i = 0;
    if (n >= 4 * W::lanes) {
      typename W::Vector part[4];
      for (int k = 0; k < 4; ++k) part[k] = W::load(x + k * W::lanes);
      for (i = 4 * W::lanes; i + 4 * W::lanes <= n; i += 4 * W::lanes) {
        for (int k = 0; k < 4; ++k) part[k] = better(W::load(x + i + k * W::lanes), part[k]);
      }
      const auto all = better(better(part[0], part[1]), better(part[2], part[3]));
      for (int k = 0; k < W::lanes; ++k) best = better(T(all[k]), best);
    }
    for (; i < n; ++i) best = better(x[i], best);
    return best;
  }

  static void start(T* a, void*, int64_t n) {
    for (int64_t i = 0; i < n; ++i) a[i] = nothing();
  }
  static void row(T* a, void*, const T* x, int64_t n, int64_t) { *a = better(of(x, n), *a); }
  static void column(T* a, void*, const T* x, int64_t n, int64_t) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) a[i] = better(x[i], a[i]);
  }
  static void merge(T* a, void*, const T* other, const void*, int64_t n) {
    column(a, nullptr, other, n, 0);
  }
  static T finish(T a, int64_t) { return a; }
};

// Index of the extreme value: the first of equals, or the last.
template <class T, bool greatest, bool last>
struct Index {
  using Value = T;
  using A = T;
  using B = int64_t;
  using Best = Extreme<T, greatest>;

  // Whether x, which comes later, takes the place of y.
  static bool beats(T x, T y) {
    const bool nan = x != x, ahead = greatest ? x > y : x < y;
    return last ? nan | ahead | (x == y) : ahead | (nan & (y == y));
  }
  static void start(T* a, int64_t* b, int64_t n) {
    for (int64_t i = 0; i < n; ++i) a[i] = Best::nothing(), b[i] = 0;
  }
  static void row(T* a, int64_t* b, const T* x, int64_t n, int64_t at) {
    const T best = Best::of(x, n);
    if (n == 0 || !beats(best, *a)) return;
    const auto found = [&](int64_t i) { return x[i] == best || (x[i] != x[i] && best != best); };
    int64_t i = last ? n - 1 : 0;
    while (!found(i)) i += last ? -1 : 1;
    *a = best;
    *b = at + i;
  }
  static void column(T* a, int64_t* b, const T* x, int64_t n, int64_t at) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const bool take = beats(x[i], a[i]);
      a[i] = take ? x[i] : a[i];
      b[i] = take ? at : b[i];
    }
  }
  static void merge(T* a, int64_t* b, const T* other_a, const int64_t* other_b, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      if (beats(other_a[i], a[i])) a[i] = other_a[i], b[i] = other_b[i];
    }
  }
};

}  // namespace
}  // namespace rlx::cpu
