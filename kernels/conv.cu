// Convolution of any rank, type and layout: an implicit product in tiles, or output by output.
#include "generated/out.h"
#include "kernels/include/tile_product.h"
#include "kernels/include/window.h"

namespace {

using X = RLX_X;
using W = RLX_W;
using T = RLX_ACCUMULATE;
using rlx::params::Conv;
using Window = rlx::Window<RLX_WIDE, RLX_TRANSPOSED>;
using Count = Window::Count;

RLX_FN T value_of(const X* x, T zero) {
  return rlx::scalar::sub(rlx::convert<T>(rlx::load(x)), zero);
}

RLX_FN T weight(const Conv& p, int group, long long m, long long c, Count tap) {
  const long long in = p.in_per_group.value, out = p.out_per_group.value, taps = p.taps.value;
  const long long row = RLX_TRANSPOSED ? (group * in + c) * out + m
                                       : (group * out + m) * in + c;
  T w = rlx::convert<T>(rlx::load(static_cast<const W*>(p.w) + (row * taps + tap)));
#if RLX_W_ZERO
  w = rlx::scalar::sub(w, rlx::convert<T>(rlx::load(static_cast<const RLX_W_ZERO_TYPE*>(p.w_zero) +
                                                    (group * out + m) * p.w_zero_step)));
#endif
  return w;
}

RLX_FN T zero_of_x(const Conv& p) {
#if RLX_X_ZERO
  return rlx::convert<T>(rlx::load(static_cast<const RLX_X_ZERO_TYPE*>(p.x_zero)));
#else
  return T(0);
#endif
}

RLX_FN void put(const Conv& p, long long image, long long channel, long long pixel, T sum) {
  rlx::out::run<1>(p.out, rlx::out::Index(image * p.y_batch + channel * p.y_channel +
                                          pixel * p.y_pixel), &sum);
}

}  // namespace

#if RLX_FORM == 0
// Few output channels in a group (depthwise): a thread for each output.
extern "C" __global__ void conv(const Conv p) {
  using Index = unsigned long long;
  const long long channels = p.groups * p.out_per_group.value;
  const Index count = Index(p.batch) * Index(channels) * Index(p.out_pixels.value);
  const X* x = static_cast<const X*>(p.x);
  const T zero = zero_of_x(p);
  for (Index i = rlx::thread_rank(); i < count; i += rlx::thread_count()) {
#if RLX_CHANNELS_LAST
    const long long channel = (long long)(i % Index(channels));
    const Index position = i / Index(channels);
#else
    const Index line = i / Index(p.out_pixels.value);
    const long long channel = (long long)(line % Index(channels));
    const Index position = line / Index(channels) * Index(p.out_pixels.value) +
                           i % Index(p.out_pixels.value);
#endif
    const int group = int(rlx::divide(Count(channel), p.out_per_group));
    Index image = position;
    const Window::Pixel pixel = Window::pixel_of(p, image, group);
    const long long m = channel - group * p.out_per_group.value;
    T sum = T(0);
    for (Count tap = 0; tap < Count(p.taps.value); ++tap) {
      long long offset;
      if (!Window::find(p, pixel, Window::tap_of(p, tap, 0), offset)) continue;
      for (long long c = 0; c < p.in_per_group.value; ++c) {
        sum = rlx::scalar::add(sum, rlx::scalar::mul(value_of(x + (offset + c * p.x_channel),
                                                              zero),
                                                     weight(p, group, m, c, tap)));
      }
    }
    put(p, (long long)(image), channel,
        (long long)(position - image * Index(p.out_pixels.value)), sum);
  }
}
#else
namespace {

using Tile = rlx::TileProduct<T>;
using Index = unsigned long long;

// Weights of `ms` channels from m0 on, for k in [k0, k0 + 16) as (channel, tap).
RLX_FN void load_weights(const Conv& p, int group, long long m0, long long k0, long long depth,
                         Tile::Slices& slices) {
  for (int i = int(threadIdx.x); i < Tile::m * Tile::k; i += Tile::threads) {
    const int r = i / Tile::k, k = i % Tile::k;
    T w = T(0);
    if (m0 + r < p.out_per_group.value && k0 + k < depth) {
      Count c = Count(k0 + k);
      const Count tap = rlx::split(c, p.taps);
      w = weight(p, group, m0 + r, c, tap);
    }
    slices.a[k][r] = w;
  }
}

// What a thread's pixel reads for each k.
RLX_FN void load_pixel(const Conv& p, const X* x, const Window::Pixel& pixel, long long k0,
                       long long depth, T zero, Tile::Slices& slices) {
  const int column = int(threadIdx.x) % Tile::n;
#pragma unroll
  for (int k = int(threadIdx.x) / Tile::n; k < Tile::k; k += Tile::threads / Tile::n) {
    T value = T(0);
    if (k0 + k < depth) {
      Count c = Count(k0 + k);
      const Count tap = rlx::split(c, p.taps);
      long long offset;
      if (Window::find(p, pixel, Window::tap_of(p, tap, c), offset)) {
        value = value_of(x + offset, zero);
      }
    }
    slices.b[k][column] = value;
  }
}

}  // namespace

// Rows are output channels of a group, columns are pixels of all images, k is (channel, tap).
extern "C" __global__ void __launch_bounds__(256) conv(const Conv p) {
  __shared__ Tile::Slices slices;
  const long long pixels = p.batch * p.out_pixels.value, ms = p.out_per_group.value;
  const Index columns = Index(pixels + Tile::n - 1) / Tile::n;
  const Index rows = Index(ms + Tile::m - 1) / Tile::m;
  const Index block = rlx::block_rank();
  const int group = int(block / (rows * columns));
  const long long m0 = (long long)(block % rows) * Tile::m;
  const long long n0 = (long long)(block / rows % columns) * Tile::n;
  if (group >= p.groups) return;
  Index mine = Index(n0) + threadIdx.x % Tile::n;
  const Window::Pixel pixel =
      mine < Index(pixels) ? Window::pixel_of(p, mine, group) : Window::no_pixel();
  const X* x = static_cast<const X*>(p.x);
  const T zero = zero_of_x(p);
  const long long depth = p.in_per_group.value * p.taps.value;
  Tile tile(int(threadIdx.x));
  for (long long k0 = 0; k0 < depth; k0 += Tile::k) {
    load_weights(p, group, m0, k0, depth, slices);
    load_pixel(p, x, pixel, k0, depth, zero, slices);
    __syncthreads();
    tile.add(slices);
    __syncthreads();
  }
#pragma unroll
  for (int j = 0; j < Tile::each; ++j) {
    const long long n = n0 + tile.column + j;
    if (n >= pixels) continue;
    const long long number = n / p.out_pixels.value, at = n - number * p.out_pixels.value;
#pragma unroll
    for (int i = 0; i < Tile::each; ++i) {
      const long long m = m0 + tile.row + i;
      if (m < ms) put(p, number, group * ms + m, at, tile.sum[i][j]);
    }
  }
}
#endif
