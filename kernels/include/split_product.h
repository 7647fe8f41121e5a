// Where k is split: each block leaves float sums of its part, and all parts are added in a fixed
// order by a second launch, through the Region behind the product.
#pragma once

#include "generated/out.h"
#include "kernels/include/index.h"
#include "kernels/include/vector.h"
#include "kernels/params/tile_product.h"

namespace rlx {

// One product of the batch, and a part of its k.
struct ProductPart {
  unsigned long long batch, split;
  long long k, end;

  __device__ ProductPart(const params::TileProduct& p, unsigned long long rest)
      : batch(rest / (unsigned long long)(p.splits)),
        split(rest % (unsigned long long)(p.splits)),
        k((long long)(split) * p.k_part),
        end(k + p.k_part < p.k ? k + p.k_part : p.k) {}
};

// Results from (m, n) on: into `partial`, or through the Region.
template <int vector>
RLX_FN void write_product(const params::TileProduct& p, const ProductPart& part, long long m,
                          long long n, float (&x)[vector]) {
  using Index = unsigned long long;
  const bool whole = p.splits == 1;
  const Index batch = whole ? part.batch : part.split * Index(p.batches) + part.batch;
  const Index place = (batch * Index(p.m) + Index(m)) * Index(p.n) + Index(n);
  if (!whole) {
    store_run<vector>(p.partial + place, x);
    return;
  }
#pragma unroll
  for (int j = 0; j < vector; ++j) x[j] *= p.alpha;
  out::run<vector>(p.out, out::Index(place), x);
}

template <int vector> RLX_FN void join_parts(const params::TileProduct& p) {
  using Index = unsigned long long;
  const Index count = Index(p.batches) * Index(p.m) * Index(p.n);
  const Index step = thread_count() * vector;
  for (Index at = thread_rank() * vector; at < count; at += step) {
    float sum[vector] = {};
#pragma unroll 4
    for (int s = 0; s < p.splits; ++s) {
      float x[vector];
      load_run<vector>(x, p.partial + Index(s) * count + at);
#pragma unroll
      for (int j = 0; j < vector; ++j) sum[j] += x[j];
    }
#pragma unroll
    for (int j = 0; j < vector; ++j) sum[j] *= p.alpha;
    out::run<vector>(p.out, out::Index(at), sum);
  }
}

}  // namespace rlx
