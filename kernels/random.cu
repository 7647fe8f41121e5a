// Random numbers: element i takes lane i % 4 of block counter + i / 4, as on every device.
#include "kernels/include/element.h"
#include "kernels/include/index.h"
#include "kernels/include/scalar_ops.h"
#include "kernels/include/philox.h"
#include "kernels/params/random.h"

using Index = unsigned long long;

#if RLX_FORM == 4
// After the draw: the counter moves behind it.
extern "C" __global__ void draw(const rlx::params::Random p) {
  if (rlx::thread_rank() == 0) *p.counter += Index(p.count + 3) / 4;
}
#else
namespace {

using S = RLX_SOURCE;
using T = RLX_TARGET;
enum { uniform, normal, bernoulli, multinomial };

RLX_FN double probability(const void* x, Index i) {
  return rlx::convert<double>(rlx::load(static_cast<const S*>(x) + i));
}

// Walks the distribution exp(x) of a row.
RLX_FN long long choose(const rlx::params::Random& p, Index i, double u) {
  const Index row = i / Index(p.samples) * Index(p.classes);
  double top = -1e300 * 1e300, total = 0.0;
  for (long long c = 0; c < p.classes; ++c) top = rlx::scalar::max(top, probability(p.x, row + c));
  for (long long c = 0; c < p.classes; ++c) {
    total += rlx::scalar::exp(probability(p.x, row + c) - top);
  }
  double left = u * total;
  long long chosen = 0;
  for (; chosen + 1 < p.classes; ++chosen) {
    left -= rlx::scalar::exp(probability(p.x, row + chosen) - top);
    if (left < 0.0) break;
  }
  return chosen;
}

}  // namespace

extern "C" __global__ void draw(const rlx::params::Random p) {
  const uint64_t seed = p.seed, offset = p.counter ? *p.counter : 0;
  for (Index i = rlx::thread_rank(); i < Index(p.count); i += rlx::thread_count()) {
    double value;
    if constexpr (RLX_FORM == normal) {
      value = p.a + p.b * rlx::philox_normal(seed, offset, i);
    } else {
      const double u = rlx::philox_uniform(seed, offset, i);
      if constexpr (RLX_FORM == bernoulli) value = u < probability(p.x, i) ? 1.0 : 0.0;
      else if constexpr (RLX_FORM == multinomial) value = double(choose(p, i, u));
      else value = p.a + (p.b - p.a) * u;
    }
    rlx::store(static_cast<T*>(p.y) + i, rlx::convert<rlx::ComputeOf<T>>(value));
  }
}
#endif
