// GridSample by N-linear or cubic interpolation: an item is a place of the output
// for a block of channels, which share its taps.
#pragma once

#include "kernels/include/sampling.h"
#include "kernels/params/map.h"

namespace rlx::map {

inline constexpr int grid_channels = 16;  // channels of an item

// The taps of all channels at entry `batch * places + place` of the grid. `rank` and `padding` are
// p's: a caller that gives them as constants gets code for those alone.
template <int points, class W, int most>
RLX_FN void grid_taps(const params::Map& p, long long entry, int rank, scalar::Padding padding,
                      scalar::Taps<W, most>& taps) {
  const params::MapOperand &x = p.operands[0], &grid = p.operands[1];
  const bool align_corners = p.ints[2] != 0;
  taps.count = 1;
  taps.offset[0] = 0;
  taps.weight[0] = 1;
  for (int k = 0; k < rank; ++k) {
    const long long n = x.shape[2 + k];
    // The grid lists the innermost axis first.
    const W given = scalar::load_real<W>(grid.data, grid.dtype, entry * rank + rank - 1 - k);
    const W at = scalar::denormalise(given, n, align_corners);
    scalar::add_axis<points>(taps, scalar::inside(at, n, padding, align_corners), n, padding,
                             align_corners);
  }
  scalar::drop_zeros(taps);
}

// Extents of the axes behind the channels.
RLX_FN long long grid_extent(const params::MapOperand& x) {
  long long extent = 1;
  for (int k = 2; k < x.rank; ++k) extent *= x.shape[k];
  return extent;
}

template <class T, int points, int most>
RLX_FN void grid_interpolate(const params::Map& p, long long item) {
  const params::MapOperand &x = p.operands[0], &y = p.operands[2];
  const long long image = grid_extent(x), places = grid_extent(y);
  const long long channels = x.shape[1], blocks = (channels + grid_channels - 1) / grid_channels;
  const long long place = item % places, block = item / places % blocks;
  const long long batch = item / places / blocks;
  scalar::Taps<ComputeOf<T>, most> taps;
  const auto padding = scalar::Padding(p.ints[1]);
  grid_taps<points>(p, batch * places + place, x.rank - 2, padding, taps);
  const long long first = batch * channels + block * grid_channels;
  const T* plane = static_cast<const T*>(x.data) + first * image;
  T* to = static_cast<T*>(y.data) + first * places + place;
  const long long left = channels - block * grid_channels;
  const int count = int(left < grid_channels ? left : grid_channels);
  for (int c = 0; c < count; ++c) {
    to[c * places] = Element<T>::store(scalar::weighted_sum(plane + c * image, taps));
  }
}

// x [N, C, D...], grid [N, E..., rank] -> y [N, C, E...]; ints: points of an axis (2 linear,
// 4 cubic), padding, align_corners. Items: N, blocks of channels, E.
template <class T> RLX_FN void grid_sample(const params::Map& p, long long item) {
  if (p.ints[0] == 2) grid_interpolate<T, 2, 8>(p, item);
  else grid_interpolate<T, 4, 64>(p, item);
}

}  // namespace rlx::map
