// Convolution of any type by plain loops over the output, the taps and the input channels.
#include "cpu/kernels/conv_direct.h"

#include "cpu/kernels/storage.h"
#include "cpu/kernels/zero_point.h"
#include "cpu/team.h"

namespace rlx::cpu {
namespace {

// Calls f(tap, offset into the image) for the taps of an output pixel that read the input.
template <class F>
void each_tap(const DirectConv& conv, const int64_t* pixel, F&& f) {
  const ConvGeometry& g = conv.geometry;
  const TapRun* runs[3];
  for (int axis = 0; axis < 3; ++axis) runs[axis] = &conv.taps[axis].runs[size_t(pixel[axis])];
  const auto at = [&](int axis, int64_t i, int64_t& tap, int64_t& offset) {
    const AxisTaps& taps = conv.taps[axis];
    tap = tap * g.kernel[axis] + runs[axis]->tap + i * taps.tap_step;
    offset += (runs[axis]->source + i * taps.source_step) * g.x.space[axis];
  };
  for (int64_t i = 0; i < runs[0]->count; ++i) {
    int64_t plane_tap = 0, plane = 0;
    at(0, i, plane_tap, plane);
    for (int64_t j = 0; j < runs[1]->count; ++j) {
      int64_t row_tap = plane_tap, row = plane;
      at(1, j, row_tap, row);
      for (int64_t k = 0; k < runs[2]->count; ++k) {
        int64_t tap = row_tap, offset = row;
        at(2, k, tap, offset);
        f(tap, offset);
      }
    }
  }
}

template <class X, class W, class Sum, class Y>
void run(const DirectConv& conv, const X* x, const W* w, const void* x_zero, const void* w_zero,
         Y* y, int threads) {
  const ConvGeometry& g = conv.geometry;
  const int64_t in = g.in_per_group(), out = g.out_per_group(), taps = g.taps();
  const Sum zero = Sum(zero_point(conv.x_zero_type, x_zero, 0));
  const auto one = [&](int64_t n, int64_t channel, const int64_t* pixel) {
    const int64_t group = channel / out, m = channel % out;
    const int64_t wz = conv.w_zero_per_channel ? channel : 0;
    const Sum w_zero_value = Sum(zero_point(conv.w_zero_type, w_zero, wz));
    const X* image = x + n * g.x.batch + group * in * g.x.channel;
    Sum sum = 0;
    each_tap(conv, pixel, [&](int64_t tap, int64_t at) {
      for (int64_t c = 0; c < in; ++c) {
        const int64_t row = g.transposed ? (group * in + c) * out + m : channel * in + c;
        const Sum weight = Sum(w[row * taps + tap]) - w_zero_value;
        sum += (Sum(image[at + c * g.x.channel]) - zero) * weight;
      }
    });
    return sum;
  };
  parallel_for(threads, g.batch * g.out_channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t n = item / g.out_channels, channel = item % g.out_channels;
      Y* to = y + n * g.y.batch + channel * g.y.channel;
      int64_t at[3];
      for (at[0] = 0; at[0] < g.out[0]; ++at[0])
        for (at[1] = 0; at[1] < g.out[1]; ++at[1])
          for (at[2] = 0; at[2] < g.out[2]; ++at[2]) {
            const int64_t* s = g.y.space;
            to[at[0] * s[0] + at[1] * s[1] + at[2] * s[2]] = Y(one(n, channel, at));
          }
    }
  });
}

// Calls f(Storage<X>, Storage<W>, Storage<Sum>, Storage<Y>) for types that there is code for.
template <class F>
bool with_types(DType x, DType w, DType y, F&& f) {
  const auto floats = [&]<class T>(Storage<T> tag) {
    using Sum = typename Storage<T>::wide;
    if constexpr (std::is_same_v<T, float>) {
      if (y == x && w == DType::float16) return f(tag, Storage<Float16>{}, tag, tag), true;
      if (y == x && w == DType::bfloat16) return f(tag, Storage<Bfloat16>{}, tag, tag), true;
    }
    if (w != x) return false;
    if (y == x) return f(tag, tag, Storage<Sum>{}, tag), true;
    if (y == DType::float32) return f(tag, tag, Storage<Sum>{}, Storage<float>{}), true;
    return false;
  };
  const auto bytes = [&](auto tag) {
    using Sum = Storage<uint32_t>;
    if (y != DType::int32) return false;
    if (w == DType::int8) return f(tag, Storage<int8_t>{}, Sum{}, Storage<int32_t>{}), true;
    if (w == DType::uint8) return f(tag, Storage<uint8_t>{}, Sum{}, Storage<int32_t>{}), true;
    return false;
  };
  switch (x) {
    case DType::float32: return floats(Storage<float>{});
    case DType::float64: return y == x && floats(Storage<double>{});
    case DType::float16: return floats(Storage<Float16>{});
    case DType::bfloat16: return floats(Storage<Bfloat16>{});
    case DType::int8: return bytes(Storage<int8_t>{});
    case DType::uint8: return bytes(Storage<uint8_t>{});
    default: return false;
  }
}

}  // namespace

bool direct_conv_takes(DType x, DType w, DType y) {
  return with_types(x, w, y, [](auto, auto, auto, auto) {});
}

void direct_conv(const DirectConv& conv, const void* x, const void* w, const void* x_zero,
                 const void* w_zero, void* y, int threads) {
  const auto typed = [&]<class X, class W, class Sum, class Y>(Storage<X>, Storage<W>,
                                                               Storage<Sum>, Storage<Y>) {
    run<X, W, Sum, Y>(conv, static_cast<const X*>(x), static_cast<const W*>(w), x_zero, w_zero,
                      static_cast<Y*>(y), threads);
  };
  with_types(conv.x_type, conv.w_type, conv.y_type, typed);
}

}  // namespace rlx::cpu
