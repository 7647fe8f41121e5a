// RoiAlign: an item is one bin of one region for a block of channels, which share its taps.
#pragma once

#include "kernels/include/sampling.h"
#include "kernels/params/map.h"

namespace rlx::map {

inline constexpr int roi_channels = 8;  // channels of an item

// One axis of a bin: where its samples lie, and which of them can lie in the image.
template <class W> struct RoiAxis {
  W start, step;
  long long samples, first, last;
};

template <class W>
RLX_FN RoiAxis<W> roi_axis(W low, W high, long long bin, long long bins, long long n,
                           long long samples, bool half_pixel) {
  const W shift = half_pixel ? W(0.5) : W(0);
  W length = (high - shift) - (low - shift);
  if (!half_pixel && !(length > 1)) length = 1;  // a malformed region is one pixel
  const W size = length / W(bins), most = W(1 << 30);
  const W wanted = samples > 0 ? W(samples) : scalar::ceil(size);
  RoiAxis<W> axis;
  axis.samples = wanted > 0 ? (long long)(wanted < most ? wanted : most) : 0;
  axis.start = low - shift + W(bin) * size;
  axis.step = axis.samples > 0 ? size / W(axis.samples) : W(0);
  axis.first = 0;
  axis.last = axis.samples;
  if (axis.step > 0) {  // a region that is mostly outside must not take forever
    const double from = (-1.0 - double(axis.start)) / double(axis.step) - 2;
    const double to = (double(n) - double(axis.start)) / double(axis.step) + 2;
    if (from > 0) axis.first = from < double(axis.samples) ? (long long)from : axis.samples;
    if (to < double(axis.samples)) axis.last = to > 0 ? (long long)to : 0;
  }
  return axis;
}

// x [N, C, H, W], rois [R, 4] (x1, y1, x2, y2), batch_indices int64 [R] -> y [R, C, h, w];
// ints: samples of a bin (0: as the size says), max rather than average, half_pixel;
// floats: spatial scale. Items: R, blocks of channels, h, w.
template <class T> RLX_FN void roi_align(const params::Map& p, long long item) {
  using W = ComputeOf<T>;
  const params::MapOperand &x = p.operands[0], &rois = p.operands[1], &y = p.operands[3];
  const long long channels = x.shape[1], height = x.shape[2], width = x.shape[3];
  const long long rows = y.shape[2], columns = y.shape[3], bins = rows * columns;
  const long long blocks = (channels + roi_channels - 1) / roi_channels;
  const long long bin = item % bins, block = item / bins % blocks, roi = item / bins / blocks;
  const long long batch = static_cast<const long long*>(p.operands[2].data)[roi];
  if (batch < 0 || batch >= x.shape[0]) {
    if (p.fault) *p.fault = 1;
    return;
  }
  const W scale = W(p.floats[0]);
  W corner[4];
  for (int k = 0; k < 4; ++k) {
    corner[k] = scalar::load_real<W>(rois.data, rois.dtype, roi * 4 + k) * scale;
  }
  const bool maximum = p.ints[1] != 0, half_pixel = p.ints[2] != 0;
  const RoiAxis<W> down = roi_axis(corner[1], corner[3], bin / columns, rows, height, p.ints[0],
                                   half_pixel);
  const RoiAxis<W> across = roi_axis(corner[0], corner[2], bin % columns, columns, width,
                                     p.ints[0], half_pixel);
  const long long first = block * roi_channels, image = height * width;
  const T* plane = static_cast<const T*>(x.data) + (batch * channels + first) * image;
  const int count = int(channels - first < roi_channels ? channels - first : roi_channels);
  W found[roi_channels] = {};
  // Samples outside count as 0, also for the maximum.
  bool any = down.first > 0 || across.first > 0 || down.last < down.samples ||
             across.last < across.samples;
  for (long long i = down.first; i < down.last; ++i) {
    for (long long j = across.first; j < across.last; ++j) {
      scalar::Taps<W, 4> taps;
      scalar::bilinear_taps(down.start + (W(i) + W(0.5)) * down.step,
                            across.start + (W(j) + W(0.5)) * across.step, height, width, taps);
      for (int c = 0; c < count; ++c) {
        if (!maximum) {
          found[c] += scalar::weighted_sum(plane + c * image, taps);
          continue;
        }
        // ONNX takes the largest of the weighted corners, not of the interpolated values.
        W best = 0;
        for (int k = 0; k < taps.count; ++k) {
          const W corner_value = taps.weight[k] * load(plane + c * image + taps.offset[k]);
          best = k == 0 ? corner_value : scalar::max(best, corner_value);
        }
        found[c] = any ? scalar::max(found[c], best) : best;
      }
      any = true;
    }
  }
  const double samples = double(down.samples) * double(across.samples);
  const W divisor = maximum || samples < 1 ? W(1) : W(samples);
  T* to = static_cast<T*>(y.data) + (roi * channels + first) * bins + bin;
  for (int c = 0; c < count; ++c) to[c * bins] = Element<T>::store(found[c] / divisor);
}

}  // namespace rlx::map
