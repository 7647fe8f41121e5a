// Where the window of a convolution lies in x: what pixel of y and tap of the window read.
#pragma once

#include "kernels/include/index.h"
#include "kernels/params/conv.h"

namespace rlx {

template <bool wide> struct WindowCoord { using Type = int; };
template <> struct WindowCoord<true> { using Type = long long; };

// `wide`: an extent, or how far windows reach, passes 2^30.
template <bool wide, bool transposed> struct Window {
  using Coord = typename WindowCoord<wide>::Type;
  using Count = scalar::Unsigned<Coord>;
  static constexpr Coord far = Coord(1) << (8 * int(sizeof(Coord)) - 2);
  struct Pixel {
    long long offset;  // of its group's first channel, where the window begins
    Coord at[3];
  };
  struct Tap {
    long long offset;
    Coord at[3];
  };

  // `number` becomes that of the image.
  __device__ static Pixel pixel_of(const params::Conv& p, unsigned long long& number, int group) {
    Count rest = Count(split(number, p.out_pixels));
    Pixel pixel;
    pixel.at[2] = Coord(split(rest, p.out_row));
    pixel.at[1] = Coord(remainder(rest, p.out_plane));
    pixel.at[0] = Coord(divide(rest, p.out_plane));
    pixel.offset = (long long)(number) * p.x_batch + group * p.in_per_group.value * p.x_channel;
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      const params::ConvAxis& axis = p.axes[k];
      pixel.at[k] = pixel.at[k] * Coord(transposed ? 1 : axis.stride.value) +
                    Coord(transposed ? axis.pad : -axis.pad);
      if (!transposed) pixel.offset += pixel.at[k] * axis.x_stride;
    }
    return pixel;
  }

  // Those that read nothing, whatever the other.
  __device__ static Pixel no_pixel() { return {0, {-far, 0, 0}}; }
  __device__ static Tap no_tap() { return {0, {transposed ? far : -far, 0, 0}}; }

  __device__ static Tap tap_of(const params::Conv& p, Count number, long long channel) {
    Tap tap;
    tap.offset = channel * p.x_channel;
    tap.at[2] = Coord(split(number, p.tap_row));
    tap.at[1] = Coord(split(number, p.tap_plane));
    tap.at[0] = Coord(number);
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      tap.at[k] *= Coord(p.axes[k].dilation);
      if (!transposed) tap.offset += tap.at[k] * p.axes[k].x_stride;
    }
    return tap;
  }

  // The place in x; false where the tap lies outside.
  __device__ static bool find(const params::Conv& p, const Pixel& pixel, const Tap& tap,
                              long long& offset) {
    offset = pixel.offset + tap.offset;
    bool inside = true;
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      const params::ConvAxis& axis = p.axes[k];
      if constexpr (transposed) {
        const Coord u = pixel.at[k] - tap.at[k];
        Count i = Count(u);
        inside = inside && u >= 0 && split(i, axis.stride) == 0 && i < Count(axis.in);
        offset += (long long)(i) * axis.x_stride;
      } else {
        inside = inside && Count(pixel.at[k] + tap.at[k]) < Count(axis.in);
      }
    }
    return inside;
  }
};

}  // namespace rlx
