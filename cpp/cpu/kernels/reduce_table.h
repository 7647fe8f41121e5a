// Log-sum-exp, and the table that finds the loops of each kind and type.
#pragma once

#include <cstring>
#include <type_traits>

#include "cpu/kernels/reduce_extremes.h"
#include "cpu/kernels/reduce_sums.h"
#include "cpu/kernels/vecmath.h"

namespace rlx::cpu {
namespace {

// a: the largest value; b: the sum of exp(x - largest). Only finite largest values are summed
// under; with another the result is that value.
template <Real T>
struct LogSumExp {
  using Value = T;
  using A = T;
  using B = double;

  static bool finite(T x) { return x - x == 0; }
  static double sum_exp(const T* x, int64_t n, T largest) {
    double total = 0;
    int64_t i = 0;
    if constexpr (std::is_same_v<T, float>) {
      using W = Wide<float>;
      typename W::Vector part = {};
      for (; i + W::lanes <= n; i += W::lanes) part += vecmath::exp(W::load(x + i) - largest);
      for (int k = 0; k < W::lanes; ++k) total += double(part[k]);
    }
    for (; i < n; ++i) total += scalar::exp(double(x[i] - largest));
    return total;
  }
  static void start(T* a, double* b, int64_t n) {
    for (int64_t i = 0; i < n; ++i) a[i] = Extreme<T, true>::nothing(), b[i] = 0;
  }
  static void row(T* a, double* b, const T* x, int64_t n, int64_t) {
    constexpr int64_t block = 1024;
    for (int64_t i = 0; i < n; i += block) {
      const int64_t count = n - i < block ? n - i : block;
      raise(a, b, Extreme<T, true>::of(x + i, count));
      if (finite(*a)) *b += sum_exp(x + i, count, *a);
    }
  }
  // Makes room for a larger value.
  static void raise(T* a, double* b, T value) {
    const T largest = Extreme<T, true>::better(value, *a);
    if (finite(*a) && finite(largest)) *b *= scalar::exp(double(*a - largest));
    *a = largest;
  }
  static void column(T* a, double* b, const T* x, int64_t n, int64_t) {
    for (int64_t i = 0; i < n; ++i) {
      raise(a + i, b + i, x[i]);
      if (finite(a[i])) b[i] += scalar::exp(double(x[i] - a[i]));
    }
  }
  static void merge(T* a, double* b, const T* other_a, const double* other_b, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      raise(a + i, b + i, other_a[i]);
      if (finite(a[i]) && finite(other_a[i])) {
        b[i] += other_b[i] * scalar::exp(double(other_a[i] - a[i]));
      }
    }
  }
};

template <class P> using AOf = typename P::A;
template <class P> using BOf = typename P::B;

template <class P>
void finish_states(void* out, const void* a, const void* b, int64_t n, int64_t count) {
  using T = typename P::Value;
  auto* states = static_cast<const AOf<P>*>(a);
  if constexpr (std::is_same_v<BOf<P>, int64_t>) {
    std::memcpy(out, b, size_t(n) * sizeof(int64_t));
  } else if constexpr (std::is_same_v<BOf<P>, double>) {
    for (int64_t i = 0; i < n; ++i) {
      const bool regular = P::finite(states[i]);
      const double sum = static_cast<const double*>(b)[i];
      static_cast<T*>(out)[i] = regular ? T(scalar::log(sum) + double(states[i])) : states[i];
    }
  } else {
    for (int64_t i = 0; i < n; ++i) static_cast<T*>(out)[i] = P::finish(states[i], count);
  }
}

// The functions of a policy behind untyped pointers.
template <class P>
ReduceLoops loops_of() {
  using A = AOf<P>;
  using B = BOf<P>;
  using T = typename P::Value;
  ReduceLoops loops;
  loops.a_bytes = sizeof(A);
  if constexpr (!std::is_void_v<B>) loops.b_bytes = sizeof(B);
  loops.start = [](void* a, void* b, int64_t n) {
    P::start(static_cast<A*>(a), static_cast<B*>(b), n);
  };
  loops.row = [](void* a, void* b, const void* x, int64_t n, int64_t at) {
    P::row(static_cast<A*>(a), static_cast<B*>(b), static_cast<const T*>(x), n, at);
  };
  loops.column = [](void* a, void* b, const void* x, int64_t n, int64_t at) {
    P::column(static_cast<A*>(a), static_cast<B*>(b), static_cast<const T*>(x), n, at);
  };
  loops.merge = [](void* a, void* b, const void* c, const void* d, int64_t n) {
    P::merge(static_cast<A*>(a), static_cast<B*>(b), static_cast<const A*>(c),
             static_cast<const B*>(d), n);
  };
  loops.finish = &finish_states<P>;
  return loops;
}

template <class T>
ReduceLoops pick_reduce(ReduceKind kind, bool last) {
  switch (kind) {
    case ReduceKind::sum: return loops_of<Sum<T, Same, After::none>>();
    case ReduceKind::mean: return loops_of<Sum<T, Same, After::mean>>();
    case ReduceKind::l1: return loops_of<Sum<T, Size, After::none>>();
    case ReduceKind::l2: return loops_of<Sum<T, Square, After::root>>();
    case ReduceKind::sum_square: return loops_of<Sum<T, Square, After::none>>();
    case ReduceKind::log_sum: return loops_of<Sum<T, Same, After::logarithm>>();
    case ReduceKind::prod: return loops_of<Product<T>>();
    case ReduceKind::max: return loops_of<Extreme<T, true>>();
    case ReduceKind::min: return loops_of<Extreme<T, false>>();
    case ReduceKind::argmax:
      return last ? loops_of<Index<T, true, true>>() : loops_of<Index<T, true, false>>();
    case ReduceKind::argmin:
      return last ? loops_of<Index<T, false, true>>() : loops_of<Index<T, false, false>>();
    case ReduceKind::log_sum_exp:
      if constexpr (Real<T>) return loops_of<LogSumExp<T>>();
      return {};
  }
  return {};
}

ReduceLoops pick_reduce_loops(ReduceKind kind, DType type, bool last) {
  const bool extreme = kind == ReduceKind::max || kind == ReduceKind::min;
  if (type == DType::boolean && extreme) return pick_reduce<uint8_t>(kind, last);
  if (type == DType::float32) return pick_reduce<float>(kind, last);
  if (type == DType::float64) return pick_reduce<double>(kind, last);
  return with_integer(type, ReduceLoops{}, [=](auto tag) -> ReduceLoops {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, bool>) return {};
    else return pick_reduce<T>(kind, last);
  });
}

}  // namespace
}  // namespace rlx::cpu
