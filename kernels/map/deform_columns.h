// The columns of a deformable convolution: an item is one tap of the window at one place of the
// output, for the channels that share its offset.
#pragma once

#include "kernels/include/sampling.h"
#include "kernels/params/map.h"

namespace rlx::map {

// x [N, C, D...], offset [N, groups * taps * rank, E...], mask [N, groups * taps, E...] (may be
// absent) -> columns [N, C, taps, E...]; ints: groups of offsets, then for each of the (up to 3)
// axes its kernel, stride, dilation and pad at the beginning. Items: N, groups, taps, E.
template <class T> RLX_FN void deform_columns(const params::Map& p, long long item) {
  using W = ComputeOf<T>;
  const params::MapOperand &x = p.operands[0], &offset = p.operands[1], &mask = p.operands[2];
  const int rank = x.rank - 2;
  const long long groups = p.ints[0];
  long long image = 1, places = 1, count = 1;
  for (int k = 0; k < rank; ++k) {
    image *= x.shape[2 + k];
    places *= offset.shape[2 + k];
    count *= p.ints[1 + 4 * k];
  }
  const long long place = item % places, tap = item / places % count;
  const long long group = item / places / count % groups, batch = item / places / count / groups;
  // Coordinates of the place and of the tap, innermost axis last.
  long long out[3] = {}, step[3] = {}, rest = place, left = tap;
  for (int k = rank - 1; k >= 0; --k) {
    out[k] = rest % offset.shape[2 + k];
    rest /= offset.shape[2 + k];
    step[k] = left % p.ints[1 + 4 * k];
    left /= p.ints[1 + 4 * k];
  }
  scalar::Taps<W, 8> taps;
  taps.count = 1;
  taps.offset[0] = 0;
  taps.weight[0] = 1;
  const T* moved = static_cast<const T*>(offset.data) + (item - place) * rank + place;
  for (int k = 0; k < rank; ++k) {
    const long long* axis = p.ints + 1 + 4 * k;
    const W base = W(out[k] * axis[1] + step[k] * axis[2] - axis[3]);
    scalar::add_axis<2>(taps, base + load(moved + k * places), x.shape[2 + k],
                        scalar::Padding::zeros, true);
  }
  scalar::drop_zeros(taps);
  const W weight = mask.data ? load(static_cast<const T*>(mask.data) + item) : W(1);
  const long long channels = x.shape[1], share = channels / groups, first = group * share;
  const T* plane = static_cast<const T*>(x.data) + (batch * channels + first) * image;
  T* to = static_cast<T*>(p.operands[3].data) +
          ((batch * channels + first) * count + tap) * places + place;
  for (long long c = 0; c < share; ++c) {
    const W value = scalar::weighted_sum(plane + c * image, taps) * weight;
    to[c * count * places] = Element<T>::store(value);
  }
}

}  // namespace rlx::map
