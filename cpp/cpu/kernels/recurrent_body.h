// The gates of recurrent cells on vectors of V: a vector of floats, or one double.
//
// Templates; static, so that each instruction set keeps its own copy.
#pragma once

#include <cmath>
#include <cstring>

#include "cpu/kernels/recurrent_cell.h"
#include "cpu/kernels/vecmath.h"

namespace rlx::cpu::cell {

template <class V>
struct Vector {
  using T = float;
  static V exp(V x) { return vecmath::exp(x); }
  static V log(V x) { return vecmath::log(x); }
  static V tanh(V x) { return vecmath::tanh(x); }
  static V sigmoid(V x) { return vecmath::sigmoid(x); }
};

template <>
struct Vector<double> {
  using T = double;
  static double exp(double x) { return std::exp(x); }
  static double log(double x) { return std::log(x); }
  static double tanh(double x) { return std::tanh(x); }
  static double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
};

// to[j] = f(a[j], b[j]) for j < n; the last vector may be partial.
template <class V, class T, class F>
[[gnu::always_inline]] static inline void map(int64_t n, const T* a, const T* b, T* to, F&& f) {
  constexpr int64_t lanes = sizeof(V) / sizeof(T);
  const auto load = [](const T* from, int64_t count) {
    V value{};
    std::memcpy(&value, from, size_t(count) * sizeof(T));
    return value;
  };
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    const V value = f(load(a + j, lanes), load(b + j, lanes));
    std::memcpy(to + j, &value, sizeof(V));
  }
  if (j == n) return;
  const V value = f(load(a + j, n - j), load(b + j, n - j));
  std::memcpy(to + j, &value, size_t(n - j) * sizeof(T));
}

template <class V, class T>
static void activate(const Gate& gate, T clip, int64_t n, T* values) {
  using M = Vector<V>;
  const T alpha = T(gate.alpha), beta = T(gate.beta);
  const V zero{}, one = zero + T(1);
  const auto apply = [&](auto&& f) {
    map<V>(n, values, values, values, [&](V x, V) {
      if (clip > 0) x = x > clip ? zero + clip : x < -clip ? zero - clip : x;
      return f(x);
    });
  };
  switch (gate.function) {
    case GateFunction::sigmoid: return apply([](V x) { return M::sigmoid(x); });
    case GateFunction::tanh: return apply([](V x) { return M::tanh(x); });
    case GateFunction::relu: return apply([&](V x) { return x < zero ? zero : x; });
    case GateFunction::affine: return apply([&](V x) { return x * alpha + beta; });
    case GateFunction::leaky_relu: return apply([&](V x) { return x < zero ? x * alpha : x; });
    case GateFunction::thresholded_relu:
      return apply([&](V x) { return x < zero + alpha ? zero : x; });
    case GateFunction::scaled_tanh:
      return apply([&](V x) { return M::tanh(x * beta) * alpha; });
    case GateFunction::hard_sigmoid: return apply([&](V x) {
      x = x * alpha + beta;
      return x < zero ? zero : x > one ? one : x;
    });
    case GateFunction::elu: return apply([&](V x) {
      const V below = M::exp(x < zero ? x : zero) - one;
      return x < zero ? below * alpha : x;
    });
    case GateFunction::softsign:
      return apply([&](V x) { return x / (one + (x < zero ? -x : x)); });
    case GateFunction::softplus: return apply([&](V x) {
      const V size = x < zero ? -x : x;
      return (x < zero ? zero : x) + M::log(one + M::exp(-size));
    });
  }
}

template <class V, class T>
[[gnu::always_inline]] static inline void add(int64_t n, T* to, const T* other) {
  map<V>(n, to, other, to, [](V a, V b) { return a + b; });
}

template <class V, class T>
[[gnu::always_inline]] static inline void add_product(int64_t n, T* to, const T* a, const T* b) {
  for (int64_t j = 0; j < n; ++j) to[j] += a[j] * b[j];
}

template <class V, class T>
static void lstm(const CellRow<T>& row) {
  const int64_t n = row.hidden;
  T *i = row.pre, *o = i + n, *f = o + n, *candidate = f + n;
  add<V>(4 * n, row.pre, row.product);
  if (row.peephole) {
    add_product<V>(n, i, row.peephole, row.c);
    add_product<V>(n, f, row.peephole + 2 * n, row.c);
  }
  activate<V>(row.gates[0], row.clip, n, i);
  if (row.input_forget) {
    map<V>(n, i, i, f, [](V x, V) { return V{} + T(1) - x; });
  } else {
    activate<V>(row.gates[0], row.clip, n, f);
  }
  activate<V>(row.gates[1], row.clip, n, candidate);
  map<V>(n, f, row.c, row.c, [](V a, V b) { return a * b; });
  add_product<V>(n, row.c, i, candidate);
  if (row.peephole) add_product<V>(n, o, row.peephole + n, row.c);
  activate<V>(row.gates[0], row.clip, n, o);
  std::memcpy(row.h, row.c, size_t(n) * sizeof(T));
  activate<V>(row.gates[2], row.clip, n, row.h);
  map<V>(n, o, row.h, row.h, [](V a, V b) { return a * b; });
}

// h = (1 - z) * candidate + z * h
template <class V, class T>
[[gnu::always_inline]] static inline void blend(int64_t n, const T* z, const T* candidate, T* h) {
  for (int64_t j = 0; j < n; ++j) h[j] = (T(1) - z[j]) * candidate[j] + z[j] * h[j];
}

template <class V, class T>
static void gru(const CellRow<T>& row) {
  const int64_t n = row.hidden;
  T *z = row.pre, *r = z + n, *candidate = r + n;
  add<V>(2 * n, row.pre, row.product);
  activate<V>(row.gates[0], row.clip, 2 * n, z);
  std::memcpy(row.reset, row.product + 2 * n, size_t(n) * sizeof(T));
  if (row.candidate_bias) add<V>(n, row.reset, row.candidate_bias);
  add_product<V>(n, candidate, r, row.reset);
  activate<V>(row.gates[1], row.clip, n, candidate);
  blend<V>(n, z, candidate, row.h);
}

template <class V, class T>
static void gru_reset(const CellRow<T>& row) {
  const int64_t n = row.hidden;
  add<V>(2 * n, row.pre, row.product);
  activate<V>(row.gates[0], row.clip, 2 * n, row.pre);
  map<V>(n, row.pre + n, row.h, row.reset, [](V a, V b) { return a * b; });
}

template <class V, class T>
static void gru_update(const CellRow<T>& row) {
  const int64_t n = row.hidden;
  T* candidate = row.pre + 2 * n;
  add<V>(n, candidate, row.product + 2 * n);
  activate<V>(row.gates[1], row.clip, n, candidate);
  blend<V>(n, row.pre, candidate, row.h);
}

template <class V, class T>
static void rnn(const CellRow<T>& row) {
  const int64_t n = row.hidden;
  map<V>(n, row.pre, row.product, row.h, [](V a, V b) { return a + b; });
  activate<V>(row.gates[0], row.clip, n, row.h);
}

template <class V, class T>
constexpr CellKernels<T> kernels() {
  return {lstm<V, T>, gru<V, T>, gru_reset<V, T>, gru_update<V, T>, rnn<V, T>};
}

template <int bytes>
struct Floats {
  typedef float V __attribute__((vector_size(bytes)));
};

}  // namespace rlx::cpu::cell
