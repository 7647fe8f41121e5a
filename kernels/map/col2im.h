// Col2Im: an item is a run of an image's last axis, which adds up all that the blocks hold for it.
#pragma once

#include "kernels/include/scalar_ops.h"
#include "kernels/include/element.h"
#include "kernels/params/map.h"

namespace rlx::map {

inline constexpr int col2im_run = 32;

// One axis: elements of a block lie `dilation` apart, blocks `stride`, the first at -pad.
struct Col2ImAxis {
  long long taps, blocks, stride, dilation, pad;
};

// The smallest k >= 0 with k * step >= x.
RLX_FN long long at_or_after(long long x, long long step) {
  return x > 0 ? (x + step - 1) / step : 0;
}

// Adds to sums of [start, start + count) what the elements of x, [taps, blocks] with rows `row`
// apart, hold for them. The shorter of both is the outer loop.
template <class T, class W>
RLX_FN void col2im_axis(const T* x, const Col2ImAxis& axis, long long row, long long start,
                        long long count, W* sums) {
  const long long from = start + axis.pad;
  const long long reach = count - 1 + (axis.taps - 1) * axis.dilation;
  if (axis.taps <= reach / axis.stride + 1) {
    for (long long tap = 0; tap < axis.taps; ++tap) {
      const long long shift = from - tap * axis.dilation;
      long long end = at_or_after(shift + count, axis.stride);
      if (end > axis.blocks) end = axis.blocks;
      for (long long block = at_or_after(shift, axis.stride); block < end; ++block) {
        const long long at = block * axis.stride - shift;
        sums[at] = scalar::add(sums[at], W(load(x + tap * row + block)));
      }
    }
    return;
  }
  long long last = at_or_after(from + count, axis.stride);
  if (last > axis.blocks) last = axis.blocks;
  const long long first = from - (axis.taps - 1) * axis.dilation;
  for (long long block = at_or_after(first, axis.stride); block < last; ++block) {
    const long long shift = from - block * axis.stride;
    long long end = at_or_after(shift + count, axis.dilation);
    if (end > axis.taps) end = axis.taps;
    for (long long tap = at_or_after(shift, axis.dilation); tap < end; ++tap) {
      const long long at = tap * axis.dilation - shift;
      sums[at] = scalar::add(sums[at], W(load(x + tap * row + block)));
    }
  }
}

// x [N, C * product(block), blocks] -> y [N, C, D...]; ints: for each of the (up to 4) axes its
// block, blocks, stride, dilation and pad. Items: N, C, D..., but runs of the last.
template <class T> RLX_FN void col2im(const params::Map& p, long long item) {
  using W = ComputeOf<T>;
  const params::MapOperand& y = p.operands[1];
  const int outer = y.rank - 3;  // axes before the last
  Col2ImAxis axes[4];
  long long taps = 1, blocks = 1;
  for (int k = 0; k <= outer; ++k) {
    const long long* n = p.ints + 5 * k;
    axes[k] = {n[0], n[1], n[2], n[3], n[4]};
    taps *= n[0];
    blocks *= n[1];
  }
  const Col2ImAxis& last = axes[outer];
  const long long width = y.shape[y.rank - 1], runs = (width + col2im_run - 1) / col2im_run;
  const long long start = item % runs * col2im_run;
  const int count = int(width - start < col2im_run ? width - start : col2im_run);
  long long place[4] = {}, rest = item / runs;
  for (int k = outer - 1; k >= 0; --k) {
    place[k] = rest % y.shape[2 + k] + axes[k].pad;
    rest /= y.shape[2 + k];
  }
  const T* from = static_cast<const T*>(p.operands[0].data) + rest * taps * blocks;
  W sums[col2im_run] = {};
  const long long outer_taps = taps / last.taps;
  for (long long tap = 0; tap < outer_taps; ++tap) {
    long long left = tap, column = 0, scale = last.blocks;
    bool hit = true;
    for (int k = outer - 1; k >= 0 && hit; --k) {
      const long long reach = place[k] - left % axes[k].taps * axes[k].dilation;
      const long long block = reach / axes[k].stride;
      hit = reach >= 0 && block * axes[k].stride == reach && block < axes[k].blocks;
      column += block * scale;
      scale *= axes[k].blocks;
      left /= axes[k].taps;
    }
    const T* own = from + tap * last.taps * blocks + column;
    if (hit) col2im_axis(own, last, blocks, start, count, sums);
  }
  T* to = static_cast<T*>(y.data) + item / runs * width + start;
  for (int k = 0; k < count; ++k) to[k] = Element<T>::store(sums[k]);
}

}  // namespace rlx::map
