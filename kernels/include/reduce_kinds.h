// What each kind of Reduce keeps while it reads values: start, take, merge, finish.
#pragma once

#include "kernels/include/element.h"
#include "kernels/include/scalar_ops.h"

namespace rlx {

enum class ReduceKind {
  sum, mean, max, min, prod, l1, l2, sum_square, log_sum, log_sum_exp, argmax, argmin
};

template <class T> inline constexpr bool is_real = scalar::Traits<T>::kind == scalar::Kind::real;

template <class T> RLX_FN T lowest_value() {
  if constexpr (is_real<T>) return T(scalar::from_bits(0xff800000u));
  else if constexpr (scalar::is_signed<T>) return T(scalar::Unsigned<T>(1) << (8 * sizeof(T) - 1));
  else return T(0);
}
template <class T> RLX_FN T highest_value() {
  if constexpr (is_real<T>) return T(scalar::from_bits(0x7f800000u));
  else return T(~lowest_value<T>());
}

// The type that sums of T run in; integers as unsigned, which wraps.
template <class T, bool = is_real<T>> struct SumOf { using type = scalar::Unsigned<T>; };
template <class T> struct SumOf<T, true> { using type = double; };

// sum, mean, l1, l2, sum_square, log_sum, prod.
template <class T, ReduceKind kind> struct SumReducer {
  using State = typename SumOf<T>::type;
  using Result = T;
  RLX_METHOD State start() { return State(kind == ReduceKind::prod ? 1 : 0); }
  RLX_METHOD State of(T x) {
    if constexpr (kind == ReduceKind::l1) return State(scalar::abs(x));
    const State y = State(x);
    if constexpr (kind == ReduceKind::l2) return scalar::mul(y, y);
    // Rounded as the type itself would: an overflow is one.
    if constexpr (kind == ReduceKind::sum_square) return State(scalar::mul(x, x));
    return y;
  }
  RLX_METHOD void take(State& s, T x, long long) { s = merge(s, of(x)); }
  RLX_METHOD State merge(State a, State b) {
    if constexpr (kind == ReduceKind::prod) return scalar::mul(a, b);
    else return scalar::add(a, b);
  }
  RLX_METHOD T finish(State a, long long count) {
    if constexpr (kind == ReduceKind::mean) {
      if constexpr (is_real<T>) return T(a / double(count));
      else return count == 0 ? T(0) : T(T(a) / T(count));
    } else if constexpr (kind == ReduceKind::l2 || kind == ReduceKind::log_sum) {
      const double x = is_real<T> ? double(a) : double(T(a));
      const double y = kind == ReduceKind::l2 ? scalar::sqrt(x) : scalar::log(x);
      if constexpr (!is_real<T>) {  // of zero: the least number
        if (!(y > -1e18)) return lowest_value<T>();
      }
      return T(y);
    } else {
      return T(a);
    }
  }
};

template <class T, bool greatest> struct ExtremeReducer {
  using State = T;
  using Result = T;
  RLX_METHOD T start() { return greatest ? lowest_value<T>() : highest_value<T>(); }
  RLX_METHOD void take(T& s, T x, long long) { s = merge(s, x); }
  RLX_METHOD T merge(T a, T b) { return greatest ? scalar::max(a, b) : scalar::min(a, b); }
  RLX_METHOD T finish(T a, long long) { return a; }
};

// The index of the extreme: the first of equals or the last; NaN beats numbers.
template <class T, bool greatest, bool last> struct IndexReducer {
  struct State {
    T value;
    long long index;  // -1: nothing yet
  };
  using Result = long long;
  RLX_METHOD State start() { return {T(0), -1}; }
  RLX_METHOD void take(State& s, T x, long long index) { s = merge(s, {x, index}); }
  RLX_METHOD State merge(State a, State b) {
    if (b.index < 0) return a;
    if (a.index < 0) return b;
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    bool take_b;
    if (a_nan || b_nan) take_b = a_nan && b_nan ? (b.index < a.index) != last : b_nan;
    else if (a.value == b.value) take_b = (b.index < a.index) != last;
    else take_b = greatest ? b.value > a.value : b.value < a.value;
    return take_b ? b : a;
  }
  RLX_METHOD long long finish(State s, long long) { return s.index < 0 ? 0 : s.index; }
};

// The largest value, and the sum of exp(x - largest).
template <class T> struct LogSumExpReducer {
  struct State {
    T largest;
    double sum;
  };
  using Result = T;
  RLX_METHOD bool finite(T x) { return x - x == 0; }
  RLX_METHOD State start() { return {lowest_value<T>(), 0.0}; }
  RLX_METHOD double scaled(State s, T largest) {
    if (!finite(s.largest)) return 0.0;
    return s.largest == largest ? s.sum : s.sum * scalar::exp(double(s.largest) - double(largest));
  }
  RLX_METHOD void take(State& s, T x, long long) { s = merge(s, {x, 1.0}); }
  RLX_METHOD State merge(State a, State b) {
    const T largest = scalar::max(a.largest, b.largest);
    if (!finite(largest)) return {largest, 0.0};
    return {largest, scaled(a, largest) + scaled(b, largest)};
  }
  RLX_METHOD T finish(State s, long long) {
    return finite(s.largest) ? T(scalar::log(s.sum) + double(s.largest)) : s.largest;
  }
};

template <class T, ReduceKind kind, bool last> struct ReducerOf {
  using type = SumReducer<T, kind>;
};
template <class T, bool last> struct ReducerOf<T, ReduceKind::max, last> {
  using type = ExtremeReducer<T, true>;
};
template <class T, bool last> struct ReducerOf<T, ReduceKind::min, last> {
  using type = ExtremeReducer<T, false>;
};
template <class T, bool last> struct ReducerOf<T, ReduceKind::argmax, last> {
  using type = IndexReducer<T, true, last>;
};
template <class T, bool last> struct ReducerOf<T, ReduceKind::argmin, last> {
  using type = IndexReducer<T, false, last>;
};
template <class T, bool last> struct ReducerOf<T, ReduceKind::log_sum_exp, last> {
  using type = LogSumExpReducer<T>;
};

}  // namespace rlx
