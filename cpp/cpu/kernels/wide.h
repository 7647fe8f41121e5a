// Vectors of any element type, and sums over runs that keep their precision.
// Included by files of every instruction set: all of it is local to each.
#pragma once

#include <cstring>

#include "cpu/kernels/region_types.h"

namespace rlx::cpu {
namespace {

template <class T>
struct Wide {
  typedef T Vector __attribute__((vector_size(vector_bytes)));
  static constexpr int lanes = vector_bytes / int(sizeof(T));

  static Vector load(const T* p) {
    Vector v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static void store(T* p, Vector v) { std::memcpy(p, &v, sizeof v); }
  // Fewer than `lanes` values, the others `rest`; and back.
  static Vector load_some(const T* p, int64_t n, T rest) {
    Vector v;
    for (int64_t i = 0; i < lanes; ++i) v[i] = i < n ? p[i] : rest;
    return v;
  }
  static void store_some(T* p, Vector v, int64_t n) {
    for (int64_t i = 0; i < n; ++i) p[i] = v[i];
  }
  static T sum(Vector v) {
    T total = 0;
    for (int k = 0; k < lanes; ++k) total += v[k];
    return total;
  }
};

// f of each value as a double, added up.
template <class T, class F>
double sum_in_double(const T* x, int64_t n, F f) {
  using W = Wide<double>;
  typedef T Part __attribute__((vector_size(W::lanes * sizeof(T))));
  W::Vector a = {}, b = {};
  int64_t i = 0;
  for (; i + 2 * W::lanes <= n; i += 2 * W::lanes) {
    Part low, high;
    std::memcpy(&low, x + i, sizeof low);
    std::memcpy(&high, x + i + W::lanes, sizeof high);
    a += f(__builtin_convertvector(low, W::Vector));
    b += f(__builtin_convertvector(high, W::Vector));
  }
  double total = W::sum(a + b);
  for (; i < n; ++i) total += f(double(x[i]));
  return total;
}

// Values that lanes of float may add up before their sum joins a double.
constexpr int64_t sum_block = 512;

}  // namespace
}  // namespace rlx::cpu
