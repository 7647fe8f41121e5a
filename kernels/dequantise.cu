// Quantised weights as floats in memory, for products that libraries do.
#include "kernels/include/dequant.h"
#include "kernels/include/index.h"

extern "C" __global__ void __launch_bounds__(256) dequantise(const rlx::params::Dequantise p) {
  using S = RLX_T;
  using T = float;
  constexpr int run = RLX_RUN;
  using Index = unsigned long long;
  const Index runs = Index((p.b.k + run - 1) / run), count = Index(p.matrices * p.b.n) * runs;
  for (Index i = rlx::thread_rank(); i < count; i += rlx::thread_count()) {
    const long long k = (long long)(i % runs) * run, line = (long long)(i / runs);
    T x[run];
    rlx::load_weights<T, RLX_B, RLX_SCALE, RLX_ZERO, true, RLX_ZEROS, RLX_EVEN>(
        p.b, line / p.b.n, line % p.b.n, k, x);
    S* y = static_cast<S*>(p.y) + line * p.b.k + k;
    S stored[run];
#pragma unroll
    for (int j = 0; j < run; ++j) stored[j] = rlx::Element<S>::store(x[j]);
    if constexpr (RLX_ALIGNED) {
      rlx::store_run<run>(y, stored);
    } else {
#pragma unroll
      for (int j = 0; j < run; ++j) {
        if (k + j < p.b.k) y[j] = stored[j];
      }
    }
  }
}
