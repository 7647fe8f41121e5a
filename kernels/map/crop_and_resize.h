// CropAndResize (com.microsoft): an item is a place of one crop, all channels.
#pragma once

#include "kernels/include/sampling.h"
#include "kernels/params/map.h"

namespace rlx::map {

// Where line i of `lines` lies in an image of n, for a crop from low to high (of 1).
template <class W>
RLX_FN W crop_place(W low, W high, long long i, long long lines, long long n) {
  const W whole = W(n - 1);
  if (lines > 1) return low * whole + W(i) * ((high - low) * whole / W(lines - 1));
  return W(0.5) * (low + high) * whole;
}

// x [N, C, H, W], rois [R, 4] (y1, x1, y2, x2), batch_indices int32 [R] -> y [R, C, h, w];
// ints: nearest rather than bilinear; floats: the value outside. Items: R, h, w.
template <class T> RLX_FN void crop_and_resize(const params::Map& p, long long item) {
  using W = ComputeOf<T>;
  const params::MapOperand &x = p.operands[0], &rois = p.operands[1], &y = p.operands[3];
  const long long channels = x.shape[1], height = x.shape[2], width = x.shape[3];
  const long long rows = y.shape[2], columns = y.shape[3], places = rows * columns;
  const long long place = item % places, roi = item / places;
  const long long batch = static_cast<const int*>(p.operands[2].data)[roi];
  if (batch < 0 || batch >= x.shape[0]) {
    if (p.fault) *p.fault = 1;
    return;
  }
  W corner[4];
  for (int k = 0; k < 4; ++k) {
    corner[k] = scalar::load_real<W>(rois.data, rois.dtype, roi * 4 + k);
  }
  const W down = crop_place(corner[0], corner[2], place / columns, rows, height);
  const W across = crop_place(corner[1], corner[3], place % columns, columns, width);
  const bool within =
      down >= 0 && down <= W(height - 1) && across >= 0 && across <= W(width - 1);
  scalar::Taps<W, 4> taps;
  if (within && p.ints[0]) {
    taps.count = 1;
    taps.weight[0] = 1;
    taps.offset[0] = (long long)scalar::floor(down + W(0.5)) * width +
                     (long long)scalar::floor(across + W(0.5));
  } else {
    scalar::bilinear_taps(down, across, height, width, taps);
  }
  const T* plane = static_cast<const T*>(x.data) + batch * channels * height * width;
  T* to = static_cast<T*>(y.data) + roi * channels * places + place;
  for (long long c = 0; c < channels; ++c) {
    const W value = within ? scalar::weighted_sum(plane + c * height * width, taps)
                           : W(p.floats[0]);
    to[c * places] = Element<T>::store(value);
  }
}

}  // namespace rlx::map
