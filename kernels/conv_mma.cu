// Convolutions on tensor cores: tiles of a product one of whose operands is gathered from x by the
// windows of its pixels, with any Region behind it. Where k is split, a second launch of the same
// kernel adds the parts, so that no size compiles another one.
#include "generated/out.h"
#include "kernels/include/tile_mma.h"
#include "kernels/include/window.h"

namespace {

using S = RLX_T;
using Index = unsigned long long;
using rlx::params::ConvTiles;
using Window = rlx::Window<RLX_WIDE, RLX_TRANSPOSED>;
using Count = Window::Count;

// Channels last, rows are pixels and columns are channels; channels first, the other way round:
// results lie as they are written.
constexpr bool last = RLX_CHANNELS_LAST;
constexpr int tile_pixels = last ? RLX_TILE_M : RLX_TILE_N;
constexpr int tile_channels = last ? RLX_TILE_N : RLX_TILE_M;
using Tile = rlx::TileMma<S, RLX_TILE_M, RLX_TILE_N, RLX_WARP_M, RLX_WARP_N, RLX_SLICE, RLX_STAGES,
                          true, last>;

struct Place {  // of a block
  long long pixel, channel, k, end;  // where it begins, and where its part of k ends
  Index split;
  int group;
};

RLX_FN Place place_of(const ConvTiles& p) {
  const long long pixels = p.batch * p.out_pixels.value, ms = p.out_per_group.value;
  const Index columns = Index(ms + tile_channels - 1) / tile_channels;
  const Index rows = Index(pixels + tile_pixels - 1) / tile_pixels;
  const long long depth = p.in_per_group.value * p.taps.value;
  Index rest = rlx::block_rank();
  Place at;
  at.channel = (long long)(rest % columns) * tile_channels;
  rest /= columns;
  at.pixel = (long long)(rest % rows) * tile_pixels;
  rest /= rows;
  at.group = int(rest % Index(p.groups));
  at.split = rest / Index(p.groups);
  at.k = (long long)(at.split) * p.k_part;
  at.end = at.k + p.k_part < depth ? at.k + p.k_part : depth;
  return at;
}

struct Tables {  // of a block
  Window::Pixel pixels[tile_pixels];
  long long y[tile_pixels];  // elements before the first channel; -1: behind the last pixel
  Window::Tap taps[RLX_STAGES][Tile::k];  // of the slices to come
};

RLX_FN void find_pixels(const ConvTiles& p, const Place& at, Tables& tables) {
  for (int i = int(threadIdx.x); i < tile_pixels; i += Tile::threads) {
    const long long number = at.pixel + i;
    const bool there = number < p.batch * p.out_pixels.value;
    Index image = Index(number);
    tables.pixels[i] = there ? Window::pixel_of(p, image, at.group) : Window::no_pixel();
    tables.y[i] = there ? (long long)(image) * p.y_batch +
                              (number - (long long)(image) * p.out_pixels.value) * p.y_pixel : -1;
  }
}

RLX_FN void find_taps(const ConvTiles& p, const Place& at, int slice, Tables& tables) {
  for (int i = int(threadIdx.x); i < Tile::k; i += Tile::threads) {
    const long long k = at.k + (long long)(slice) * Tile::k + i;
    Window::Tap tap = Window::no_tap();
    if (k < at.end) {
      Count outer = Count(k);
#if RLX_TAPS_INNER
      const Count inner = rlx::split(outer, p.taps);
      tap = Window::tap_of(p, inner, outer);
#else
      const Count inner = rlx::split(outer, p.in_per_group);
      tap = Window::tap_of(p, outer, inner);
#endif
    }
    tables.taps[slice % RLX_STAGES][i] = tap;
  }
}

RLX_FN const S* read(const ConvTiles& p, const Window::Pixel& pixel, const Window::Tap& tap,
                     bool& inside) {
  long long offset;
  inside = Window::find(p, pixel, tap, offset);
  return static_cast<const S*>(p.x) + offset;
}

// A thread has the same taps in all lines, or the same pixel.
RLX_FN void load_pixels(const ConvTiles& p, const Tables& tables, int slice, Tile::Slice& to) {
  const Window::Tap* const taps = tables.taps[slice % RLX_STAGES];
  bool inside;
  if constexpr (last) {
    constexpr int runs = Tile::k / RLX_CHUNK;
    static_assert(Tile::threads % runs == 0);
    const Window::Tap tap = taps[int(threadIdx.x) % runs * RLX_CHUNK];
    rlx::copy_lines<tile_pixels, Tile::k, Tile::a_pitch, RLX_CHUNK, Tile::threads>(
        to.a, [&](int pixel, int, const S*& from) {
          from = read(p, tables.pixels[pixel], tap, inside);
          return inside;
        });
  } else {
    static_assert(Tile::threads % tile_pixels == 0);
    const Window::Pixel pixel = tables.pixels[int(threadIdx.x) % tile_pixels];
    rlx::copy_lines<Tile::k, tile_pixels, Tile::b_pitch, 1, Tile::threads>(
        to.b, [&](int k, int, const S*& from) {
          from = read(p, pixel, taps[k], inside);
          return inside;
        });
  }
}

RLX_FN void load_weights(const ConvTiles& p, const Place& at, int slice, Tile::Slice& to) {
  const long long k0 = at.k + (long long)(slice) * Tile::k;
  const long long ms = p.out_per_group.value, depth = p.in_per_group.value * p.taps.value;
  const S* const w = static_cast<const S*>(p.w) + ((at.group * ms + at.channel) * depth + k0);
  rlx::copy_lines<tile_channels, Tile::k, last ? Tile::b_pitch : Tile::a_pitch, RLX_CHUNK,
                  Tile::threads>(last ? to.b : to.a, [&](int m, int k, const S*& from) {
    from = w + (m * depth + k);
    return at.channel + m < ms && k0 + k < at.end;
  });
}

constexpr int vector = RLX_VECTOR;  // channels that lie together

RLX_FN void write(const ConvTiles& p, const Place& at, const Tables& tables,
                  const float* results) {
  constexpr int runs = RLX_TILE_N / vector;
  const long long ms = p.out_per_group.value;
  for (int i = int(threadIdx.x); i < RLX_TILE_M * runs; i += Tile::threads) {
    const int r = i / runs, c = i % runs * vector;
    const long long before = tables.y[last ? r : c], m = at.channel + (last ? c : r);
    if (before < 0 || m >= ms) continue;
    float sum[vector];
    rlx::load_run<vector>(sum, results + r * Tile::out_pitch + c);
    const Index place = Index(before + (at.group * ms + m) * p.y_channel);
    if (p.splits > 1) {
      rlx::store_run<vector>(p.partial + at.split * Index(p.batch * p.y_batch) + place, sum);
    } else {
      rlx::out::run<vector>(p.out, rlx::out::Index(place), sum);
    }
  }
}

// In a fixed order, so that results repeat bit for bit.
RLX_FN void join(const ConvTiles& p) {
  const Index count = Index(p.batch * p.y_batch);
  for (Index i = rlx::thread_rank() * vector; i < count; i += rlx::thread_count() * vector) {
    float sum[vector] = {};
    for (int s = 0; s < p.splits; ++s) {
      float part[vector];
      rlx::load_run<vector>(part, p.partial + Index(s) * count + i);
#pragma unroll
      for (int j = 0; j < vector; ++j) sum[j] += part[j];
    }
    rlx::out::run<vector>(p.out, rlx::out::Index(i), sum);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(Tile::threads) conv_mma(const ConvTiles p) {
  RLX_DYNAMIC_SHARED(shared);
  __shared__ Tables tables;
  if (p.join) return join(p);
  const Place at = place_of(p);
  if (at.split >= Index(p.splits)) return;
  find_pixels(p, at, tables);
  for (int slice = 0; slice < RLX_STAGES - 1; ++slice) find_taps(p, at, slice, tables);
  __syncthreads();
  Tile tile;
  const int slices = at.k < at.end ? int((at.end - at.k + Tile::k - 1) / Tile::k) : 0;
  tile.run(shared, slices, [&](Tile::Slice& to, int slice) {
    // Read behind the next barrier, when nobody reads what lay there before.
    if (slice >= RLX_STAGES - 2) find_taps(p, at, slice + 1, tables);
    load_pixels(p, tables, slice, to);
    load_weights(p, at, slice, to);
  });
  write(p, at, tables, tile.results(shared));
}
