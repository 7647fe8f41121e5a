// Sampling between the points of a grid: coordinates, borders, and taps with their weights.
#pragma once

#include "kernels/include/element.h"
#include "kernels/include/scalar_real.h"

namespace rlx::scalar {

// ONNX numbers of the float types beside float32.
inline constexpr int type_float16 = 10, type_float64 = 11, type_bfloat16 = 16;

// Element i of an array of any float type, for small operands as grids and boxes.
template <class W> RLX_FN W load_real(const void* data, int dtype, long long i) {
  switch (dtype) {
    case type_float64: return W(static_cast<const double*>(data)[i]);
    case type_float16: return W(load(static_cast<const F16*>(data) + i));
    case type_bfloat16: return W(load(static_cast<const BF16*>(data) + i));
    default: return W(static_cast<const float*>(data)[i]);
  }
}

enum class Padding { zeros, border, reflection };

// A normalised coordinate in [-1, 1] as a place among n points.
template <Real W> RLX_FN W denormalise(W x, long long n, bool align_corners) {
  return align_corners ? (x + 1) / 2 * W(n - 1) : ((x + 1) * W(n) - 1) / 2;
}

// x mirrored at low and high until it lies between them.
template <Real W> RLX_FN W reflect(W x, W low, W high) {
  const W range = high - low;
  if (!(range > 0)) return low;
  const W beyond = x < low ? low - x : x - high;
  if (!(beyond > 0)) return x;
  const W rest = fmod(beyond, range);
  const bool even = fmod(floor(beyond / range), W(2)) == 0;
  return (x < low) == even ? low + rest : high - rest;
}

// A place moved into the image as `padding` says (zeros: left where it is). NaN goes to low.
template <Real W> RLX_FN W inside(W x, long long n, Padding padding, bool align_corners) {
  if (padding == Padding::zeros) return x;
  const W low = align_corners ? W(0) : W(-0.5), high = W(n - 1) - low;
  if (x >= low && x <= high) return x;
  if (padding == Padding::border) return x > 0 ? W(n - 1) : W(0);
  const W at = reflect(x, low, high);
  return at == at ? at : W(0);
}

// The point of index i, which may lie outside [0, n): -1 where it counts as zero.
template <Real W>
RLX_FN long long point_of(W i, long long n, Padding padding, bool align_corners) {
  if (i >= 0 && i <= W(n - 1)) {
    const long long point = (long long)i;
    return point < n ? point : n - 1;  // the last of very many points is rounded in a float
  }
  if (padding == Padding::zeros) return -1;
  if (padding == Padding::border) return i > 0 ? n - 1 : 0;
  const double low = align_corners ? 0.0 : -0.5;
  const double at = reflect(double(i), low, double(n - 1) - low);
  if (!(at > 0)) return 0;
  return at < double(n - 1) ? (long long)at : n - 1;
}

// Keys' cubic weights with a = -3/4 for the four points around a fraction t.
template <Real W> RLX_FN void cubic_weights(W t, W* weight) {
  const W a = W(-0.75);
  const W near[2] = {t, 1 - t}, far[2] = {1 + t, 2 - t};
  for (int k = 0; k < 2; ++k) {
    weight[k == 0 ? 1 : 2] = ((a + 2) * near[k] - (a + 3)) * near[k] * near[k] + 1;
    weight[k == 0 ? 0 : 3] = ((a * far[k] - 5 * a) * far[k] + 8 * a) * far[k] - 4 * a;
  }
}

// The offsets and weights of the points that one sample reads; `most` is 4^rank or 2^rank.
template <class W, int most> struct Taps {
  long long offset[most];
  W weight[most];
  int count;
};

// Multiplies the taps by those of one axis more: `points` (2 linear, 4 cubic) around the place `at`
// among n. A point that counts as zero gets the offset -1.
template <int points, class W, int most>
RLX_FN void add_axis(Taps<W, most>& taps, W at, long long n, Padding padding, bool align_corners) {
  const W base = floor(at), t = at - base;
  W weight[points];
  if constexpr (points == 2) {
    weight[0] = 1 - t;
    weight[1] = t;
  } else {
    cubic_weights(t, weight);
  }
  long long place[points];
  for (int k = 0; k < points; ++k) {
    place[k] = point_of(base + W(k + 1 - points / 2), n, padding, align_corners);
  }
  for (int c = taps.count - 1; c >= 0; --c) {  // backwards: each tap makes room for its own
    const long long offset = taps.offset[c];
    const W factor = taps.weight[c];
    for (int k = points - 1; k >= 0; --k) {
      const bool counts = offset >= 0 && place[k] >= 0;
      taps.offset[c * points + k] = counts ? offset * n + place[k] : -1;
      taps.weight[c * points + k] = factor * weight[k];
    }
  }
  taps.count *= points;
}

// Leaves out the taps that count as zero.
template <class W, int most> RLX_FN void drop_zeros(Taps<W, most>& taps) {
  int kept = 0;
  for (int k = 0; k < taps.count; ++k) {
    if (taps.offset[k] < 0) continue;
    taps.offset[kept] = taps.offset[k];
    taps.weight[kept++] = taps.weight[k];
  }
  taps.count = kept;
}

template <class T, class W, int most>
RLX_FN W weighted_sum(const T* plane, const Taps<W, most>& taps) {
  W sum = 0;
  for (int k = 0; k < taps.count; ++k) sum += taps.weight[k] * load(plane + taps.offset[k]);
  return sum;
}

// The taps of a bilinear sample of a height x width plane at (y, x), for windows that let
// samples lie at most 1 outside: no taps beyond that.
template <Real W>
RLX_FN void bilinear_taps(W y, W x, long long height, long long width, Taps<W, 4>& taps) {
  taps.count = 0;
  if (!(y >= -1 && y <= W(height) && x >= -1 && x <= W(width))) return;
  y = y > 0 ? y : W(0);
  x = x > 0 ? x : W(0);
  long long top = (long long)y, left = (long long)x;
  if (top >= height - 1) y = W(top = height - 1);
  if (left >= width - 1) x = W(left = width - 1);
  const long long bottom = top + 1 < height ? top + 1 : top;
  const long long right = left + 1 < width ? left + 1 : left;
  const W down = y - W(top), across = x - W(left);
  taps.count = 4;
  taps.offset[0] = top * width + left;
  taps.offset[1] = top * width + right;
  taps.offset[2] = bottom * width + left;
  taps.offset[3] = bottom * width + right;
  taps.weight[0] = (1 - down) * (1 - across);
  taps.weight[1] = (1 - down) * across;
  taps.weight[2] = down * (1 - across);
  taps.weight[3] = down * across;
}

}  // namespace rlx::scalar
