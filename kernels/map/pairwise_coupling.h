// Class probabilities from pairwise ones (Wu, Lin and Weng 2004, algorithm 2): an item is a row.
#pragma once

#include "kernels/include/types.h"
#include "kernels/params/map.h"

namespace rlx::map {

// The chance of class i against j, of the pairs (0, 1), (0, 2) ... (1, 2) ...
template <class T> RLX_FN double pair_chance(const T* pairs, int classes, int i, int j) {
  const int low = i < j ? i : j, high = i < j ? j : i;
  const double chance = double(pairs[low * (2 * classes - low - 1) / 2 + high - low - 1]);
  return i < j ? chance : 1.0 - chance;
}

// pairs [N, C (C - 1) / 2] -> p [N, C] and room, double [N, C, C + 1].
template <class T> RLX_FN void pairwise_coupling(const params::Map& p, long long item) {
  const int classes = int(p.operands[1].shape[1]);
  const T* pairs = static_cast<const T*>(p.operands[0].data) + item * p.operands[0].shape[1];
  T* result = static_cast<T*>(p.operands[1].data) + item * classes;
  double* q = static_cast<double*>(p.operands[2].data) + item * classes * (classes + 1);
  double* qp = q + classes * classes;
  for (int t = 0; t < classes; ++t) {
    double sum = 0;
    for (int j = 0; j < classes; ++j) {
      if (j == t) continue;
      const double jt = pair_chance(pairs, classes, j, t);
      sum += jt * jt;
      q[t * classes + j] = -jt * (1.0 - jt);
    }
    q[t * classes + t] = sum;
    result[t] = T(1.0 / classes);
  }
  const int most = classes > 100 ? classes : 100;
  for (int step = 0; step < most; ++step) {
    double pqp = 0, error = 0;
    for (int t = 0; t < classes; ++t) {
      qp[t] = 0;
      for (int j = 0; j < classes; ++j) qp[t] += q[t * classes + j] * double(result[j]);
      pqp += double(result[t]) * qp[t];
    }
    for (int t = 0; t < classes; ++t) {
      const double gap = qp[t] > pqp ? qp[t] - pqp : pqp - qp[t];
      error = gap > error ? gap : error;
    }
    if (error < 0.005 / classes) break;
    for (int t = 0; t < classes; ++t) {
      const double own = q[t * classes + t], change = (pqp - qp[t]) / own, whole = 1.0 + change;
      result[t] = T(double(result[t]) + change);
      pqp = (pqp + change * (change * own + 2.0 * qp[t])) / (whole * whole);
      for (int j = 0; j < classes; ++j) {
        qp[j] = (qp[j] + change * q[t * classes + j]) / whole;
        result[j] = T(double(result[j]) / whole);
      }
    }
  }
}

}  // namespace rlx::map
