// Softmax and log-softmax of rows in registers, of long rows read again, and of columns.
#include "generated/source.h"
#include "kernels/include/reduce_kinds.h"
#include "kernels/include/warp.h"
#include "kernels/params/softmax.h"

namespace {

using rlx::source::Index;
using T = rlx::source::T0;
using Out = RLX_OUT;

// A running maximum and the sum of exp(x - maximum).
struct Sum {
  T largest, sum;
};

// Infinite maxima: -inf leaves exp(x - 0) = 0 and so 0 / 0, as the definition does; +inf gives NaN.
RLX_FN Sum merge(Sum a, Sum b) {
  const T largest = rlx::scalar::max(a.largest, b.largest);
  if (largest == rlx::lowest_value<T>()) return {largest, T(0)};
  return {largest, a.sum * rlx::scalar::exp(a.largest - largest) +
                       b.sum * rlx::scalar::exp(b.largest - largest)};
}
RLX_FN T larger(T a, T b) { return rlx::scalar::max(a, b); }
RLX_FN T added(T a, T b) { return a + b; }

RLX_FN Out result(T x, T largest, T sum, T log_sum) {
#if RLX_LOG
  return rlx::Element<Out>::store(x - largest - log_sum);
#else
  return rlx::Element<Out>::store(rlx::scalar::exp(x - largest) / sum);
#endif
}

}  // namespace

#if RLX_FORM == 0
// A row in the registers of RLX_THREADS threads, RLX_HELD runs of RLX_VECTOR values in each.
extern "C" __global__ void __launch_bounds__(RLX_BLOCK) softmax(const rlx::params::Softmax p) {
  constexpr int threads = RLX_THREADS, vector = RLX_VECTOR, held = RLX_HELD;
  __shared__ T parts[RLX_BLOCK / rlx::warp_size];
  const Index row = Index(rlx::block_rank()) * (RLX_BLOCK / threads) + threadIdx.x / threads;
  const Index lane = threadIdx.x % threads, length = row < Index(p.outer) ? Index(p.length) : 0;
  T x[held][vector];
  T largest = rlx::lowest_value<T>();
#pragma unroll
  for (int h = 0; h < held; ++h) {
    const Index i = (h * threads + lane) * vector;
    if (i >= length) continue;
    rlx::source::values<vector>(p.source, row * Index(p.length) + i, nullptr, x[h]);
#pragma unroll
    for (int k = 0; k < vector; ++k) largest = larger(largest, x[h][k]);
  }
  largest = rlx::group_reduce<threads>(largest, parts, larger);
  T sum = 0;
#pragma unroll
  for (int h = 0; h < held; ++h) {
    if ((h * threads + lane) * vector >= length) continue;
#pragma unroll
    for (int k = 0; k < vector; ++k) {
#if RLX_LOG
      x[h][k] = x[h][k] - largest;
      sum += rlx::scalar::exp(x[h][k]);
#else
      x[h][k] = rlx::scalar::exp(x[h][k] - largest);
      sum += x[h][k];
#endif
    }
  }
  sum = rlx::group_reduce<threads>(sum, parts, added);
  const T scale = RLX_LOG ? rlx::scalar::log(sum) : T(1) / sum;
#pragma unroll
  for (int h = 0; h < held; ++h) {
    const Index i = (h * threads + lane) * vector;
    if (i >= length) continue;
    Out y[vector];
#pragma unroll
    for (int k = 0; k < vector; ++k) {
      y[k] = rlx::Element<Out>::store(RLX_LOG ? x[h][k] - scale : x[h][k] * scale);
    }
    rlx::store_run<vector>(static_cast<Out*>(p.y) + (row * Index(p.length) + i), y);
  }
}
#elif RLX_FORM == 1
// A long row: read twice.
extern "C" __global__ void __launch_bounds__(RLX_BLOCK) softmax(const rlx::params::Softmax p) {
  constexpr int vector = RLX_VECTOR;
  __shared__ Sum parts[RLX_BLOCK / rlx::warp_size];
  if (rlx::block_rank() >= (unsigned long long)(p.outer)) return;
  const Index first = Index(rlx::block_rank()) * Index(p.length), length = Index(p.length);
  Sum all = {rlx::lowest_value<T>(), T(0)};
  for (Index i = threadIdx.x * vector; i < length; i += RLX_BLOCK * vector) {
    T x[vector];
    rlx::source::values<vector>(p.source, first + i, nullptr, x);
#pragma unroll
    for (int k = 0; k < vector; ++k) all = merge(all, {x[k], T(1)});
  }
  all = rlx::group_reduce<RLX_BLOCK>(all, parts, merge);
  const T log_sum = rlx::scalar::log(all.sum);
  for (Index i = threadIdx.x * vector; i < length; i += RLX_BLOCK * vector) {
    T x[vector];
    Out y[vector];
    rlx::source::values<vector>(p.source, first + i, nullptr, x);
#pragma unroll
    for (int k = 0; k < vector; ++k) y[k] = result(x[k], all.largest, all.sum, log_sum);
    rlx::store_run<vector>(static_cast<Out*>(p.y) + (first + i), y);
  }
}
#else
// A column for each thread; neighbours read neighbours.
extern "C" __global__ void softmax(const rlx::params::Softmax p) {
  const Index inner = Index(p.inner), length = Index(p.length), columns = Index(p.outer) * inner;
  const Index step = Index(rlx::thread_count());
  for (Index c = Index(rlx::thread_rank()); c < columns; c += step) {
    const Index first = c / inner * length * inner + c % inner;
    Sum all = {rlx::lowest_value<T>(), T(0)};
    T x[1];
    for (Index i = 0; i < length; ++i) {
      rlx::source::values<1>(p.source, first + i * inner, nullptr, x);
      all = merge(all, {x[0], T(1)});
    }
    const T log_sum = rlx::scalar::log(all.sum);
    for (Index i = 0; i < length; ++i) {
      rlx::source::values<1>(p.source, first + i * inner, nullptr, x);
      static_cast<Out*>(p.y)[first + i * inner] = result(x[0], all.largest, all.sum, log_sum);
    }
  }
}
#endif
