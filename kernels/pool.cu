// Max, average and Lp pooling: a thread for each output, in the order of memory.
#include "kernels/include/element.h"
#include "kernels/include/index.h"
#include "kernels/include/reduce_kinds.h"
#include "kernels/params/pool.h"

namespace {

using S = RLX_T;
using T = rlx::ComputeOf<S>;
enum { max_pool, average_pool, lp_pool };

struct Span {  // taps of a window along one axis that lie in the input
  int first, taps, divisor;
};

RLX_FN int smaller(int a, int b) { return a < b ? a : b; }

RLX_FN Span span_of(const rlx::params::PoolAxis& a, int out, bool counts_padding) {
  const int begin = out * a.stride - a.pad_begin;
  const int skipped = begin < 0 ? (-begin + a.dilation - 1) / a.dilation : 0;
  const int left = a.in - 1 - (begin + skipped * a.dilation);
  int taps = left < 0 ? 0 : left / a.dilation + 1;
  taps = smaller(taps, a.kernel - skipped);
  if (taps < 0) taps = 0;
  int divisor = taps;
  if (counts_padding) {  // what ceil_mode adds behind the padding is never counted
    const int room = a.in + a.pad_end - 1 - begin;
    divisor = room < 0 ? 0 : smaller(room / a.dilation + 1, a.kernel);
  }
  return {begin + skipped * a.dilation, taps, divisor};
}

// A template, so that integers, which have no Lp pooling, compile without it.
template <class V> RLX_FN V lp_root(V sum, int p) {
  if constexpr (rlx::scalar::Real<V>) {
    return p == 1 ? sum : p == 2 ? rlx::scalar::sqrt(sum) : rlx::scalar::pow(sum, V(1) / V(p));
  } else {
    return sum;
  }
}

}  // namespace

extern "C" __global__ void pool(const rlx::params::Pool p) {
  using Index = RLX_INDEX;
  for (Index i = Index(rlx::thread_rank()); i < Index(p.count); i += Index(rlx::thread_count())) {
    Index rest = i;
    int at[5];
#pragma unroll
    for (int k = 4; k >= 0; --k) at[k] = int(rlx::split(rest, p.extents[k]));
    const long long image = at[0], channel = RLX_CHANNELS_LAST ? at[4] : at[1];
    const int* place = RLX_CHANNELS_LAST ? at + 1 : at + 2;
    Span s[3];
    long long to = image * p.y_batch + channel * p.y_channel;
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      s[k] = span_of(p.axes[k], place[k], p.counts_padding);
      to += place[k] * p.axes[k].y_stride;
    }
    const S* x = static_cast<const S*>(p.x) + (image * p.x_batch + channel * p.x_channel);
    T result = RLX_KIND == max_pool ? rlx::lowest_value<T>() : T(0);
    long long index = 0;
    bool any = false;
    for (int a = 0; a < s[0].taps; ++a) {
      const int i0 = s[0].first + a * p.axes[0].dilation;
      for (int b = 0; b < s[1].taps; ++b) {
        const int i1 = s[1].first + b * p.axes[1].dilation;
        for (int c = 0; c < s[2].taps; ++c) {
          const int i2 = s[2].first + c * p.axes[2].dilation;
          const T v = rlx::load(x + (i0 * p.axes[0].x_stride + i1 * p.axes[1].x_stride +
                                     i2 * p.axes[2].x_stride));
          if constexpr (RLX_KIND == max_pool) {
            if (any && !(v > result || (v != v && result == result))) continue;
            result = v;
            any = true;
            index = p.column_major
                        ? i0 + (long long)(p.axes[0].in) * (i1 + (long long)(p.axes[1].in) * i2)
                        : ((long long)(i0) * p.axes[1].in + i1) * p.axes[2].in + i2;
          } else if constexpr (RLX_KIND == average_pool) {
            result += v;
          } else {
            const T size = rlx::scalar::abs(v);
            result += p.p == 1 ? size : p.p == 2 ? size * size : rlx::scalar::pow(size, T(p.p));
          }
        }
      }
    }
    if constexpr (RLX_KIND == average_pool) {
      const long long divisor = (long long)(s[0].divisor) * s[1].divisor * s[2].divisor;
      result = result / T(divisor > 1 ? divisor : 1);
    } else if constexpr (RLX_KIND == lp_pool) {
      result = lp_root(result, int(p.p));
    }
    rlx::store(static_cast<S*>(p.y) + to, result);
    if (p.indices) {
      const long long plane = (long long)(p.axes[0].in) * p.axes[1].in * p.axes[2].in;
      static_cast<long long*>(p.indices)[to] = (image * p.channels + channel) * plane + index;
    }
  }
}
