// MaxRoiPool: an item is one bin of one region and channel.
#pragma once

#include "kernels/include/sampling.h"
#include "kernels/params/map.h"

namespace rlx::map {

// The pixels [first, last) of one bin along an axis of n.
struct RoiBin {
  long long first, last;
};

RLX_FN double away_from_zero(double x) {
  return x < 0 ? scalar::ceil(x - 0.5) : scalar::floor(x + 0.5);
}

RLX_FN RoiBin roi_bin(double low, double high, long long bin, long long bins, long long n) {
  const double start = away_from_zero(low), end = away_from_zero(high);
  const double length = end - start + 1 > 1 ? end - start + 1 : 1, size = length / double(bins);
  const double from = scalar::floor(double(bin) * size) + start;
  const double to = scalar::ceil(double(bin + 1) * size) + start;
  const double most = double(n);
  return {(long long)(from > 0 ? (from < most ? from : most) : 0),
          (long long)(to > 0 ? (to < most ? to : most) : 0)};
}

// x [N, C, H, W], rois [R, 5] (batch, x1, y1, x2, y2) -> y [R, C, h, w]; floats: spatial scale.
template <class T> RLX_FN void max_roi_pool(const params::Map& p, long long item) {
  using W = ComputeOf<T>;
  const params::MapOperand &x = p.operands[0], &rois = p.operands[1], &y = p.operands[2];
  const long long channels = x.shape[1], height = x.shape[2], width = x.shape[3];
  const long long rows = y.shape[2], columns = y.shape[3];
  const long long column = item % columns, row = item / columns % rows;
  const long long channel = item / columns / rows % channels;
  const long long roi = item / columns / rows / channels;
  double entry[5];
  for (int k = 0; k < 5; ++k) {
    entry[k] = scalar::load_real<double>(rois.data, rois.dtype, roi * 5 + k);
    if (k > 0) entry[k] *= p.floats[0];
  }
  if (!(entry[0] >= 0 && entry[0] < double(x.shape[0]))) {
    if (p.fault) *p.fault = 1;
    return;
  }
  const RoiBin down = roi_bin(entry[2], entry[4], row, rows, height);
  const RoiBin across = roi_bin(entry[1], entry[3], column, columns, width);
  const T* plane =
      static_cast<const T*>(x.data) + ((long long)entry[0] * channels + channel) * height * width;
  W best = 0;
  bool any = false;
  for (long long i = down.first; i < down.last; ++i) {
    for (long long j = across.first; j < across.last; ++j, any = true) {
      const W value = load(plane + i * width + j);
      best = any ? scalar::max(best, value) : value;
    }
  }
  static_cast<T*>(y.data)[item] = Element<T>::store(best);
}

}  // namespace rlx::map
