// GridSample by N-linear or cubic interpolation: an item is a place of the output, all channels.
#pragma once

#include "kernels/include/sampling.h"
#include "kernels/params/map.h"

namespace rlx::map {

template <class T, int points, int most>
RLX_FN void grid_interpolate(const params::Map& p, long long item) {
  using W = scalar::Compute<T>;
  const params::MapOperand &x = p.operands[0], &grid = p.operands[1], &y = p.operands[2];
  const auto padding = scalar::Padding(p.ints[1]);
  const bool align_corners = p.ints[2] != 0;
  const int rank = x.rank - 2;
  scalar::Taps<W, most> taps;
  taps.count = 1;
  taps.offset[0] = 0;
  taps.weight[0] = 1;
  long long image = 1, places = 1;
  for (int k = 0; k < rank; ++k) {
    const long long n = x.shape[2 + k];
    image *= n;
    places *= y.shape[2 + k];
    // The grid lists the innermost axis first.
    const W at = scalar::load_real<W>(grid.data, grid.dtype, item * rank + rank - 1 - k);
    const W place = scalar::denormalise(at, n, align_corners);
    scalar::add_axis<points>(taps, scalar::inside(place, n, padding, align_corners), n, padding,
                             align_corners);
  }
  scalar::drop_zeros(taps);
  const long long channels = x.shape[1], batch = item / places;
  const T* plane = static_cast<const T*>(x.data) + batch * channels * image;
  T* to = static_cast<T*>(y.data) + batch * channels * places + item % places;
  for (long long c = 0; c < channels; ++c) {
    to[c * places] = scalar::narrow<T>(scalar::weighted_sum(plane + c * image, taps));
  }
}

// x [N, C, D...], grid [N, E..., rank] -> y [N, C, E...]; ints: points of an axis (2 linear,
// 4 cubic), padding, align_corners.
template <class T> RLX_FN void grid_sample(const params::Map& p, long long item) {
  if (p.ints[0] == 2) grid_interpolate<T, 2, 8>(p, item);
  else grid_interpolate<T, 4, 64>(p, item);
}

}  // namespace rlx::map
