// Padding by edge, reflection or wrapping, and filling with one value.
#include "kernels/include/index.h"
#include "kernels/include/vector.h"
#include "kernels/params/move.h"

namespace {

using Word = RLX_WORD;
using Index = RLX_INDEX;

}  // namespace

#if RLX_FORM == 0
extern "C" __global__ void extend(const rlx::params::Fill p) {
  Word value = {};
  if (p.value) value = *static_cast<const Word*>(p.value);
  const Index step = Index(rlx::thread_count());
  for (Index i = Index(rlx::thread_rank()); i < Index(p.count); i += step) {
    static_cast<Word*>(p.y)[i] = value;
  }
}
#else
namespace {

// 1: edge, 2: reflect, 3: wrap.
RLX_FN long long source_place(long long i, long long n) {
  if (RLX_FORM == 1) return i < 0 ? 0 : i >= n ? n - 1 : i;
  if (RLX_FORM == 3) return ((i % n) + n) % n;
  if (n == 1) return 0;
  const long long period = 2 * (n - 1), m = ((i % period) + period) % period;
  return m < n ? m : period - m;
}

}  // namespace

extern "C" __global__ void extend(const rlx::params::Extend p) {
  const Index step = Index(rlx::thread_count());
  for (Index i = Index(rlx::thread_rank()); i < Index(p.count); i += step) {
    Index rest = i;
    long long from = 0;
    for (int k = p.axes - 1; k >= 0; --k) {
      const Index c = rlx::split(rest, p.extents[k]);
      from += source_place((long long)(c) - p.begins[k], p.lengths[k]) * p.strides[k];
    }
    static_cast<Word*>(p.y)[i] = static_cast<const Word*>(p.x)[from];
  }
}
#endif
