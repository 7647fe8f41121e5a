// The sums of a product whose k was split, in a fixed order, through the Region behind it.
#include "generated/out.h"
#include "kernels/include/index.h"
#include "kernels/params/tile_product.h"

using Index = unsigned long long;

extern "C" __global__ void matmul_join(const rlx::params::TileProduct p) {
  constexpr int vector = RLX_VECTOR;
  const Index count = Index(p.batches) * Index(p.m) * Index(p.n);
  const Index step = rlx::thread_count() * vector;
  for (Index at = rlx::thread_rank() * vector; at < count; at += step) {
    float sum[vector] = {};
#pragma unroll 4
    for (int s = 0; s < p.splits; ++s) {
      float x[vector];
      rlx::load_run<vector>(x, p.partial + Index(s) * count + at);
#pragma unroll
      for (int j = 0; j < vector; ++j) sum[j] += x[j];
    }
#pragma unroll
    for (int j = 0; j < vector; ++j) sum[j] *= p.alpha;
    rlx::out::run<vector>(p.out, rlx::out::Index(at), sum);
  }
}
