// Loops of the sums and products of Reduce; compiled once for each instruction set.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "cpu/kernels/reduce_loops.h"
#include "cpu/kernels/wide.h"
#include "kernels/include/scalar_ops.h"

namespace rlx::cpu {
namespace {

using scalar::Real;

// Short integers would be multiplied as int, which can overflow.
template <class V>
V times(V x, V y) {
  if constexpr (scalar::Integer<V>) return scalar::mul(x, y);
  else return x * y;
}

// What happens to each value before it is added. Integers are added as unsigned, which wraps.
struct Same {
  template <class V> static V of(V x) { return x; }
};
struct Size {
  template <class V> static V of(V x) { return x < 0 ? -x : x; }
};
struct Square {
  template <class V> static V of(V x) { return times(x, x); }
};

template <class T, bool = scalar::Integer<T>> struct Summing { using type = scalar::Unsigned<T>; };
template <class T> struct Summing<T, false> { using type = T; };

// Sum of one block, short enough for lanes of T to keep its precision.
template <class T, class Before>
T block_of(const T* x, int64_t n) {
  using W = Wide<T>;
  typename W::Vector part[4] = {};
  int64_t i = 0;
  for (; i + 4 * W::lanes <= n; i += 4 * W::lanes) {
    for (int k = 0; k < 4; ++k) part[k] += Before::of(W::load(x + i + k * W::lanes));
  }
  for (; i + W::lanes <= n; i += W::lanes) part[0] += Before::of(W::load(x + i));
  const typename W::Vector all = (part[0] + part[1]) + (part[2] + part[3]);
  T total = W::sum(all);
  for (; i < n; ++i) total += Before::of(x[i]);
  return total;
}

enum class After { none, mean, root, logarithm };

// sum, l1, sum_square, mean, l2 and log_sum: float and double in double, integers in themselves.
template <class T, class Before, After after>
struct Sum {
  using Value = T;
  using Part = typename Summing<T>::type;
  using A = std::conditional_t<Real<T>, double, Part>;
  using B = void;

  static void start(A* a, void*, int64_t n) {
    for (int64_t i = 0; i < n; ++i) a[i] = 0;
  }
  static void row(A* a, void*, const T* x, int64_t n, int64_t) {
    for (int64_t i = 0; i < n; i += sum_block) {
      *a += sum(x + i, n - i < sum_block ? n - i : sum_block);
    }
  }
  static A sum(const T* x, int64_t n) {
    if constexpr (std::is_same_v<T, float> && after == After::root) return squares(x, n);
    if constexpr (std::is_same_v<T, Part>) return A(block_of<T, Before>(x, n));
    if constexpr (std::is_same_v<Before, Size>) {
      A total = 0;
      for (int64_t i = 0; i < n; ++i) total += A(scalar::abs(x[i]));
      return total;
    }
    return block_of<Part, Before>(reinterpret_cast<const Part*>(x), n);
  }
  // In double, for the root of what float cannot hold may fit it again.
  static double squares(const T* x, int64_t n) {
    return sum_in_double(x, n, [](auto v) { return v * v; });
  }
  static void column(A* a, void*, const T* x, int64_t n, int64_t) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      if constexpr (std::is_same_v<Before, Size>) {
        a[i] += A(scalar::abs(x[i]));
      } else {
        a[i] += Before::of(A(Part(x[i])));
      }
    }
  }
  static void merge(A* a, void*, const A* other, const void*, int64_t n) {
    for (int64_t i = 0; i < n; ++i) a[i] += other[i];
  }
  static T finish(A a, int64_t count) {
    if constexpr (after == After::none) return T(a);
    if constexpr (after == After::mean) {
      if constexpr (Real<T>) return T(a / double(count));
      return count == 0 ? T(0) : T(T(a) / T(count));
    }
    const double x = double(T(a));
    const double y = after == After::root ? scalar::sqrt(Real<T> ? double(a) : x)
                                          : scalar::log(Real<T> ? double(a) : x);
    if constexpr (!Real<T>) {  // of zero: the least number, not an undefined conversion
      if (!(y > -1e18)) return std::numeric_limits<T>::lowest();
    }
    return T(y);
  }
};

template <class T>
struct Product {
  using Value = T;
  using A = std::conditional_t<Real<T>, double, typename Summing<T>::type>;
  using B = void;

  static void start(A* a, void*, int64_t n) {
    for (int64_t i = 0; i < n; ++i) a[i] = 1;
  }
  static void row(A* a, void*, const T* x, int64_t n, int64_t) {
    A part[4] = {1, 1, 1, 1};
    for (int64_t i = 0; i < n; ++i) part[i & 3] = times(part[i & 3], A(x[i]));
    *a = times(times(*a, times(part[0], part[1])), times(part[2], part[3]));
  }
  static void column(A* a, void*, const T* x, int64_t n, int64_t) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) a[i] = times(a[i], A(x[i]));
  }
  static void merge(A* a, void*, const A* other, const void*, int64_t n) {
    for (int64_t i = 0; i < n; ++i) a[i] = times(a[i], other[i]);
  }
  static T finish(A a, int64_t) { return T(a); }
};

}  // namespace
}  // namespace rlx::cpu
