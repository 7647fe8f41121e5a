// Pooling of any type and layout by plain loops, with the indices of the maxima if wanted.
#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/kernels/pool.h"
#include "cpu/kernels/storage.h"
#include "cpu/team.h"

namespace rlx::cpu {
namespace {

// The windows of one image plane (batch, channel).
template <class T>
class Plane {
 public:
  using Sum = typename Storage<T>::wide;  // integers have maxima only

  Plane(const PoolShape& shape, const T* x, T* y, int64_t* indices, int64_t first_index)
      : s_(shape), x_(x), y_(y), indices_(indices), first_index_(first_index) {}

  void run() const {
    int64_t at[3];
    for (at[0] = 0; at[0] < s_.axes[0].out; ++at[0])
      for (at[1] = 0; at[1] < s_.axes[1].out; ++at[1])
        for (at[2] = 0; at[2] < s_.axes[2].out; ++at[2]) window(at);
  }

 private:
  template <class F>
  void each_tap(const int64_t* at, F&& f) const {
    const WindowSpan* spans[3];
    for (int k = 0; k < 3; ++k) spans[k] = &s_.spans[k][size_t(at[k])];
    int64_t tap[3], from[3];
    for (tap[0] = 0; tap[0] < spans[0]->taps; ++tap[0])
      for (tap[1] = 0; tap[1] < spans[1]->taps; ++tap[1])
        for (tap[2] = 0; tap[2] < spans[2]->taps; ++tap[2]) {
          int64_t offset = 0;
          for (int k = 0; k < 3; ++k) {
            from[k] = spans[k]->first + tap[k] * s_.axes[k].dilation;
            offset += from[k] * s_.x.space[k];
          }
          f(x_[offset], from);
        }
  }

  // ONNX's index of an input element within its plane.
  int64_t flat(const int64_t* at) const {
    const WindowAxis* a = s_.axes;
    if (s_.storage_order == 0) return (at[0] * a[1].in + at[1]) * a[2].in + at[2];
    return at[0] + a[0].in * (at[1] + a[1].in * at[2]);
  }

  void window(const int64_t* at) const {
    int64_t to = 0, divisor = 1;
    for (int k = 0; k < 3; ++k) {
      to += at[k] * s_.y.space[k];
      divisor *= s_.spans[k][size_t(at[k])].divisor;
    }
    switch (s_.kind) {
      case PoolKind::max: return largest(at, to);
      case PoolKind::average: {
        Sum sum = 0;
        each_tap(at, [&](T x, const int64_t*) { sum += Sum(x); });
        y_[to] = T(sum / Sum(std::max<int64_t>(divisor, 1)));
        return;
      }
      case PoolKind::lp: y_[to] = T(norm(at)); return;
    }
  }

  void largest(const int64_t* at, int64_t to) const {
    using Limits = std::numeric_limits<Sum>;
    Sum best = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    int64_t index = 0;
    bool any = false;
    each_tap(at, [&](T value, const int64_t* from) {
      const Sum x = Sum(value);
      if (any && !(x > best || (is_nan(x) && !is_nan(best)))) return;
      best = x, any = true;
      if (indices_) index = first_index_ + flat(from);
    });
    y_[to] = T(best);
    if (indices_) indices_[to] = index;
  }

  Sum norm(const int64_t* at) const {
    Sum sum = 0;
    const Sum p = Sum(s_.p);
    each_tap(at, [&](T x, const int64_t*) {
      const Sum size = std::abs(Sum(x));
      sum += s_.p == 1 ? size : s_.p == 2 ? size * size : std::pow(size, p);
    });
    return s_.p == 1 ? sum : s_.p == 2 ? std::sqrt(sum) : std::pow(sum, 1 / p);
  }

  const PoolShape& s_;
  const T* x_;
  T* y_;
  int64_t* indices_;
  int64_t first_index_;
};

template <class F>
bool with_type(PoolKind kind, DType dtype, F&& f) {
  switch (dtype) {
    case DType::float32: return f(Storage<float>{}), true;
    case DType::float64: return f(Storage<double>{}), true;
    case DType::float16: return f(Storage<Float16>{}), true;
    case DType::bfloat16: return f(Storage<Bfloat16>{}), true;
    case DType::int8: return kind == PoolKind::max && (f(Storage<int8_t>{}), true);
    case DType::uint8: return kind == PoolKind::max && (f(Storage<uint8_t>{}), true);
    default: return false;
  }
}

}  // namespace

bool pool_takes(PoolKind kind, DType dtype) {
  return with_type(kind, dtype, [](auto) {});
}

void pool_plain(const PoolShape& s, const void* x, void* y, int64_t* indices, int threads) {
  const int64_t plane = s.axes[0].in * s.axes[1].in * s.axes[2].in;
  with_type(s.kind, s.dtype, [&]<class T>(Storage<T>) {
    parallel_for(threads, s.batch * s.channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) {
        const int64_t n = item / s.channels, c = item % s.channels;
        const int64_t to = n * s.y.batch + c * s.y.channel;
        const T* from = static_cast<const T*>(x) + n * s.x.batch + c * s.x.channel;
        int64_t* places = indices ? indices + to : nullptr;
        Plane<T>(s, from, static_cast<T*>(y) + to, places, item * plane).run();
      }
    });
  });
}

}  // namespace rlx::cpu
