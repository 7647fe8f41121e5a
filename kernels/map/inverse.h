// Inverse (com.microsoft): an item is one matrix, by elimination with pivots in double.
#pragma once

#include "kernels/include/scalar_real.h"
#include "kernels/include/element.h"
#include "kernels/params/map.h"

namespace rlx::map {

// x [..., n, n] -> y of its shape and room for [x | 1], double [..., n, 2n].
template <class T> RLX_FN void inverse(const params::Map& p, long long item) {
  const params::MapOperand& x = p.operands[0];
  const long long n = x.shape[x.rank - 1], m = 2 * n;
  const T* from = static_cast<const T*>(x.data) + item * n * n;
  double* a = static_cast<double*>(p.operands[2].data) + item * n * m;
  for (long long i = 0; i < n; ++i) {
    for (long long j = 0; j < n; ++j) {
      a[i * m + j] = double(load(from + i * n + j));
      a[i * m + n + j] = i == j ? 1 : 0;
    }
  }
  for (long long k = 0; k < n; ++k) {
    long long pivot = k;
    for (long long i = k + 1; i < n; ++i) {
      if (scalar::fabs(a[i * m + k]) > scalar::fabs(a[pivot * m + k])) pivot = i;
    }
    const double top = a[pivot * m + k];  // 0 makes infinities, as the inverse has none
    for (long long j = 0; j < m; ++j) {
      const double kept = a[pivot * m + j];
      a[pivot * m + j] = a[k * m + j];
      a[k * m + j] = kept / top;
    }
    for (long long i = 0; i < n; ++i) {
      const double factor = a[i * m + k];
      if (i == k || factor == 0) continue;
      for (long long j = 0; j < m; ++j) a[i * m + j] -= factor * a[k * m + j];
    }
  }
  T* to = static_cast<T*>(p.operands[1].data) + item * n * n;
  for (long long i = 0; i < n * n; ++i) {
    to[i] = Element<T>::store(ComputeOf<T>(a[i / n * m + n + i % n]));
  }
}

}  // namespace rlx::map
