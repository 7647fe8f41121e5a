// Layer, RMS and group norm: a row for RLX_THREADS threads; read once into registers if it fits.
#include "generated/out.h"
#include "generated/source.h"
#include "kernels/include/warp.h"
#include "kernels/params/norm.h"

namespace {

using rlx::source::Index;
using T = rlx::source::T0;
using Statistic = RLX_STATISTIC;
using Kept = RLX_KEPT;
constexpr int threads = RLX_THREADS, vector = RLX_VECTOR, held = RLX_HELD;

RLX_FN T added(T a, T b) { return a + b; }

RLX_FN Index place(const rlx::params::Norm& p, Index base, Index i) {
  const Index run = rlx::divide(i, p.run);
  return base + run * Index(p.jump) + (i - run * Index(p.run.value));
}

RLX_FN void read(const rlx::params::Norm& p, Index at, T (&x)[vector]) {
  rlx::source::values<vector>(p.source, at, nullptr, x);
}

RLX_FN void keep(const rlx::params::Norm& p, Index at, const T (&x)[vector]) {
#if RLX_KEEPS
  Kept y[vector];
#pragma unroll
  for (int k = 0; k < vector; ++k) y[k] = rlx::Element<Kept>::store(x[k]);
  rlx::store_run<vector>(static_cast<Kept*>(p.kept) + at, y);
#endif
}

RLX_FN void write(const rlx::params::Norm& p, Index at, const T (&x)[vector], T mean, T scale) {
  T y[vector];
#pragma unroll
  for (int k = 0; k < vector; ++k) y[k] = (x[k] - mean) * scale;
  rlx::out::run<vector>(p.out, rlx::out::Index(at), y);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(RLX_BLOCK) normalise(const rlx::params::Norm p) {
  __shared__ T parts[RLX_BLOCK / rlx::warp_size];
  const Index row = Index(rlx::block_rank()) * (RLX_BLOCK / threads) + threadIdx.x / threads;
  const bool inside = row < Index(p.rows);
  const Index lane = threadIdx.x % threads, length = inside ? Index(p.length) : 0;
  const Index image = rlx::divide(inside ? row : Index(0), p.groups);
  const Index base = image * Index(p.image) +
                     ((inside ? row : Index(0)) - image * Index(p.groups.value)) * Index(p.group);
  const T count = T(p.length);
#if RLX_HELD
  T x[held][vector];
#pragma unroll
  for (int h = 0; h < held; ++h) {
    const Index i = (h * threads + lane) * vector;
    if (i >= length) continue;
    read(p, place(p, base, i), x[h]);
    keep(p, place(p, base, i), x[h]);
  }
#define RLX_EACH_RUN                                            \
  _Pragma("unroll") for (int h = 0; h < held; ++h)              \
    if (const Index i = (h * threads + lane) * vector; i < length)
#define RLX_READ(name) const T(&name)[vector] = x[h]
#else
  for (Index i = lane * vector; i < length; i += threads * vector) {
    T x[vector];
    read(p, place(p, base, i), x);
    keep(p, place(p, base, i), x);
  }
#define RLX_EACH_RUN for (Index i = lane * vector; i < length; i += threads * vector)
#define RLX_READ(name) \
  T name[vector];      \
  read(p, place(p, base, i), name)
#endif
  T mean = 0;
#if RLX_CENTRED
  RLX_EACH_RUN {
    RLX_READ(v);
#pragma unroll
    for (int k = 0; k < vector; ++k) mean += v[k];
  }
  mean = rlx::group_reduce<threads>(mean, parts, added) / count;
#endif
  T squares = 0;
  RLX_EACH_RUN {
    RLX_READ(v);
#pragma unroll
    for (int k = 0; k < vector; ++k) squares += (v[k] - mean) * (v[k] - mean);
  }
  squares = rlx::group_reduce<threads>(squares, parts, added) / count;
  const T scale = T(1) / rlx::scalar::sqrt(squares + T(p.epsilon));
  RLX_EACH_RUN {
    RLX_READ(v);
    write(p, place(p, base, i), v, mean, scale);
  }
  if (!inside || lane != 0) return;
  if (p.mean) static_cast<Statistic*>(p.mean)[row] = rlx::Element<Statistic>::store(mean);
  if (p.inv_std) static_cast<Statistic*>(p.inv_std)[row] = rlx::Element<Statistic>::store(scale);
}
