// GridSample that copies the nearest element: an item is a place of the output
// for a block of channels.
#pragma once

#include "kernels/include/sampling.h"
#include "kernels/params/map.h"

namespace rlx::map {

inline constexpr int nearest_channels = 16;  // channels of an item

// The flat place in an image that a grid entry means, or -1.
template <class W> RLX_FN long long nearest_place(const params::Map& p, long long entry) {
  const params::MapOperand &x = p.operands[0], &grid = p.operands[1];
  const auto padding = scalar::Padding(p.ints[0]);
  const bool align_corners = p.ints[1] != 0;
  const int rank = x.rank - 2;
  long long flat = 0;
  for (int k = 0; k < rank; ++k) {
    const long long n = x.shape[2 + k];
    const W at = scalar::load_real<W>(grid.data, grid.dtype, entry * rank + rank - 1 - k);
    const W place = scalar::rint(scalar::denormalise(at, n, align_corners));
    const W moved = scalar::inside(place, n, padding, align_corners);
    const long long point = scalar::point_of(moved, n, padding, align_corners);
    if (point < 0) return -1;
    flat = flat * n + point;
  }
  return flat;
}

// x [N, C, D...], grid [N, E..., rank] -> y [N, C, E...]; ints: padding, align_corners.
// Items: N, blocks of channels, E.
template <class T> RLX_FN void grid_nearest(const params::Map& p, long long item) {
  const params::MapOperand &x = p.operands[0], &y = p.operands[2];
  long long image = 1, places = 1;
  for (int k = 2; k < x.rank; ++k) {
    image *= x.shape[k];
    places *= y.shape[k];
  }
  const long long channels = x.shape[1];
  const long long blocks = (channels + nearest_channels - 1) / nearest_channels;
  const long long place = item % places, block = item / places % blocks;
  const long long batch = item / places / blocks, entry = batch * places + place;
  const bool wide = p.operands[1].dtype == scalar::type_float64;
  const long long at = wide ? nearest_place<double>(p, entry) : nearest_place<float>(p, entry);
  const long long first = batch * channels + block * nearest_channels;
  const T* from = static_cast<const T*>(x.data) + first * image;
  T* to = static_cast<T*>(y.data) + first * places + place;
  const long long left = channels - block * nearest_channels;
  const int count = int(left < nearest_channels ? left : nearest_channels);
  for (int c = 0; c < count; ++c) to[c * places] = at < 0 ? T{} : from[c * image + at];
}

}  // namespace rlx::map
