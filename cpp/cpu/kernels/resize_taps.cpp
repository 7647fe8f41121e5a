// The coordinate transformations and interpolation weights of ONNX Resize (operator text).
#include "cpu/kernels/resize_taps.h"

#include <algorithm>
#include <cmath>

namespace rlx::cpu {
namespace {

double coordinate(const AxisResize& a, double x) {
  const double length = a.scale * double(a.input);  // may be fractional, by the text
  const double last = double(a.input - 1);
  if (a.coordinates == "align_corners") return length == 1.0 ? 0.0 : x * last / (length - 1.0);
  if (a.coordinates == "asymmetric") return x / a.scale;
  if (a.coordinates == "tf_crop_and_resize") {
    const double span = a.roi_end - a.roi_start;
    if (length == 1.0) return 0.5 * (a.roi_start + a.roi_end) * last;
    return a.roi_start * last + x * span * last / (double(a.output) - 1.0);
  }
  if (a.coordinates == "pytorch_half_pixel" && a.output == 1) return -0.5;
  if (a.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / a.scale;
  const double half = (x + 0.5) / a.scale - 0.5;
  if (a.coordinates == "half_pixel_symmetric") {
    const double adjustment = double(a.output) / length;
    return double(a.input) / 2.0 * (1.0 - adjustment) + half;
  }
  return half;
}

int64_t nearest_place(const std::string& mode, double x) {
  if (mode == "floor") return int64_t(std::floor(x));
  if (mode == "ceil") return int64_t(std::ceil(x));
  if (mode == "round_prefer_ceil") return int64_t(std::floor(x + 0.5));
  return int64_t(std::ceil(x - 0.5));
}

double cubic(double distance, double a) {
  const double x = std::abs(distance);
  if (x <= 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
  if (x < 2.0) return ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a;
  return 0.0;
}

// Appends the taps around x: triangle or cubic filter, widened when antialiased downsampling.
void add_taps(const AxisResize& a, double x, Taps& taps) {
  const bool linear = a.mode == "linear";
  const double s = a.antialias ? std::min(a.scale, 1.0) : 1.0;
  const double support = (linear ? 1.0 : 2.0) / s;
  const int64_t first = int64_t(std::floor(x - support)) + 1;
  const int64_t last = int64_t(std::ceil(x + support)) - 1;
  const size_t start = taps.index.size();
  double total = 0.0;
  for (int64_t i = first; i <= last; ++i) {
    const double distance = (double(i) - x) * s;
    double w = linear ? std::max(0.0, 1.0 - std::abs(distance)) : cubic(distance, a.cubic_a);
    if (a.exclude_outside && (i < 0 || i >= a.input)) w = 0.0;
    if (w == 0.0) continue;
    taps.index.push_back(std::clamp<int64_t>(i, 0, a.input - 1));
    taps.weight.push_back(w);
    total += w;
  }
  if (a.exclude_outside || a.antialias) {
    for (size_t k = start; k < taps.weight.size(); ++k) taps.weight[k] /= total;
  }
}

}  // namespace

Taps resize_taps(const AxisResize& axis) {
  Taps taps;
  taps.begin.push_back(0);
  for (int64_t o = 0; o < axis.output; ++o) {
    const double x = coordinate(axis, double(o));
    const bool outside = axis.coordinates == "tf_crop_and_resize" &&
                         (x < 0.0 || x > double(axis.input - 1));
    taps.outside.push_back(outside);
    if (axis.mode == "nearest") {
      taps.index.push_back(std::clamp<int64_t>(nearest_place(axis.nearest, x), 0, axis.input - 1));
      taps.weight.push_back(1.0);
    } else {
      add_taps(axis, x, taps);
    }
    taps.begin.push_back(int64_t(taps.index.size()));
    const bool plain = taps.begin[size_t(o) + 1] - taps.begin[size_t(o)] == 1 &&
                       taps.index.back() == o && taps.weight.back() == 1.0;
    taps.identity = taps.identity && plain && !outside;
  }
  taps.identity = taps.identity && axis.input == axis.output;
  return taps;
}

}  // namespace rlx::cpu
