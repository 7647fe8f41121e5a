// Det: an item is one matrix, factored by rows with pivots in double.
#pragma once

#include "kernels/include/scalar_real.h"
#include "kernels/include/element.h"
#include "kernels/params/map.h"

namespace rlx::map {

// x [..., n, n] -> det [...] and room for the factors, double [..., n, n].
template <class T> RLX_FN void det(const params::Map& p, long long item) {
  const params::MapOperand& x = p.operands[0];
  const long long n = x.shape[x.rank - 1];
  const T* from = static_cast<const T*>(x.data) + item * n * n;
  double* a = static_cast<double*>(p.operands[2].data) + item * n * n;
  for (long long i = 0; i < n * n; ++i) a[i] = double(load(from + i));
  double product = 1;
  for (long long k = 0; k < n; ++k) {
    long long pivot = k;
    for (long long i = k + 1; i < n; ++i) {
      if (scalar::fabs(a[i * n + k]) > scalar::fabs(a[pivot * n + k])) pivot = i;
    }
    const double top = a[pivot * n + k];
    product *= pivot == k ? top : -top;
    if (top == 0) break;
    for (long long j = k; j < n; ++j) {
      const double kept = a[pivot * n + j];
      a[pivot * n + j] = a[k * n + j];
      a[k * n + j] = kept;
    }
    for (long long i = k + 1; i < n; ++i) {
      const double factor = a[i * n + k] / top;
      for (long long j = k + 1; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
    }
  }
  static_cast<T*>(p.operands[1].data)[item] = Element<T>::store(ComputeOf<T>(product));
}

}  // namespace rlx::map
