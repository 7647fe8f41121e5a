// ONNX Resize: all axes at once for nearest, else one filtered axis for each launch.
#include "kernels/include/element.h"
#include "kernels/include/index.h"
#include "kernels/include/scalar_ops.h"
#include "kernels/include/vector.h"
#include "kernels/params/resize.h"

namespace {

using Index = unsigned long long;
using rlx::params::ResizeAxis;
using Where = rlx::params::ResizeCoordinates;

RLX_FN double coordinate(const ResizeAxis& a, double x) {
  const double length = a.scale * double(a.input);  // may be fractional, by the text
  const double last = double(a.input - 1);
  switch (a.coordinates) {
    case Where::align_corners: return length == 1.0 ? 0.0 : x * last / (length - 1.0);
    case Where::asymmetric: return x / a.scale;
    case Where::tf_crop_and_resize:
      if (length == 1.0) return 0.5 * (a.roi_start + a.roi_end) * last;
      return a.roi_start * last + x * (a.roi_end - a.roi_start) * last / (double(a.output) - 1.0);
    case Where::tf_half_pixel_for_nn: return (x + 0.5) / a.scale;
    default: break;
  }
  if (a.coordinates == Where::pytorch_half_pixel && a.output == 1) return -0.5;
  const double half = (x + 0.5) / a.scale - 0.5;
  if (a.coordinates != Where::half_pixel_symmetric) return half;
  return double(a.input) / 2.0 * (1.0 - double(a.output) / length) + half;
}

RLX_FN long long clamped(long long i, long long n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }

RLX_FN long long nearest_place(const ResizeAxis& a, double x) {
  using Mode = rlx::params::ResizeNearest;
  double place = rlx::scalar::ceil(x - 0.5);
  if (a.nearest == Mode::floor) place = rlx::scalar::floor(x);
  if (a.nearest == Mode::ceil) place = rlx::scalar::ceil(x);
  if (a.nearest == Mode::round_prefer_ceil) place = rlx::scalar::floor(x + 0.5);
  return clamped((long long)(place), a.input);
}

RLX_FN double filter_weight(const ResizeAxis& a, double distance) {
  const double x = rlx::scalar::abs(distance);
  if (a.mode == rlx::params::ResizeMode::linear) return x < 1.0 ? 1.0 - x : 0.0;
  if (x <= 1.0) return ((a.cubic_a + 2.0) * x - (a.cubic_a + 3.0)) * x * x + 1.0;
  if (x < 2.0) return ((a.cubic_a * x - 5.0 * a.cubic_a) * x + 8.0 * a.cubic_a) * x -
                      4.0 * a.cubic_a;
  return 0.0;
}

}  // namespace

#if RLX_FORM == 0
extern "C" __global__ void resize(const rlx::params::ResizeNearestAll p) {
  using Word = RLX_WORD;
  for (Index i = rlx::thread_rank(); i < Index(p.count); i += rlx::thread_count()) {
    Index rest = i;
    long long from = 0;
    for (int k = p.axes - 1; k >= 0; --k) {
      const Index c = rlx::split(rest, p.extents[k]);
      from += nearest_place(p.axis[k], coordinate(p.axis[k], double(c))) * p.strides[k];
    }
    static_cast<Word*>(p.y)[i] = static_cast<const Word*>(p.x)[from];
  }
}
#elif RLX_FORM == 1
extern "C" __global__ void resize(const rlx::params::ResizePass p) {
  using From = RLX_FROM;
  using To = RLX_TO;
  using Wide = RLX_WIDE;
  const ResizeAxis& a = p.axis;
  const double s = a.antialias && a.scale < 1.0 ? a.scale : 1.0;
  const double support = (a.mode == rlx::params::ResizeMode::linear ? 1.0 : 2.0) / s;
  for (Index i = rlx::thread_rank(); i < Index(p.count); i += rlx::thread_count()) {
    Index rest = i;
    const Index inner = rlx::split(rest, p.inner), out = rlx::split(rest, p.output);
    const From* x = static_cast<const From*>(p.x) +
                    (rest * Index(a.input) * Index(p.inner.value) + inner);
    const double at = coordinate(a, double(out));
    Wide sum = 0;
    if (a.mode == rlx::params::ResizeMode::nearest) {
      sum = Wide(rlx::load(x + nearest_place(a, at) * p.inner.value));
    } else {
      const long long first = (long long)(rlx::scalar::floor(at - support)) + 1;
      const long long last = (long long)(rlx::scalar::ceil(at + support)) - 1;
      double total = 0.0;
      for (int pass = a.exclude_outside || a.antialias ? 0 : 1; pass < 2; ++pass) {
        for (long long t = first; t <= last; ++t) {
          if (a.exclude_outside && (t < 0 || t >= a.input)) continue;
          double w = filter_weight(a, (double(t) - at) * s);
          if (w == 0.0) continue;
          if (pass == 0) {
            total += w;
            continue;
          }
          if (a.exclude_outside || a.antialias) w /= total;
          sum += Wide(w) * Wide(rlx::load(x + clamped(t, a.input) * p.inner.value));
        }
      }
    }
    rlx::store(static_cast<To*>(p.y) + i, rlx::convert<rlx::ComputeOf<To>>(sum));
  }
}
#else
extern "C" __global__ void resize(const rlx::params::ResizeOutside p) {
  using To = RLX_TO;
  for (Index i = rlx::thread_rank(); i < Index(p.count); i += rlx::thread_count()) {
    Index rest = i;
    bool outside = false;
    for (int k = p.axes - 1; k >= 0; --k) {
      const double c = double(rlx::split(rest, p.extents[k]));
      if (p.axis[k].coordinates != Where::tf_crop_and_resize) continue;
      const double at = coordinate(p.axis[k], c);
      outside = outside || at < 0.0 || at > double(p.axis[k].input - 1);
    }
    if (outside) rlx::store(static_cast<To*>(p.y) + i, rlx::convert<rlx::ComputeOf<To>>(p.value));
  }
}
#endif
