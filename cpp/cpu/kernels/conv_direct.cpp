// Convolution of any type by plain loops over the output, the taps and the input channels.
#include "cpu/kernels/conv_direct.h"

#include <type_traits>

#include "core/error.h"
#include "cpu/team.h"

namespace rlx::cpu {
namespace {

template <class T>
struct Tag {
  using Type = T;
};

int32_t zero_point(DType type, const void* zero, int64_t index) {
  if (type == DType::int8) return static_cast<const int8_t*>(zero)[index];
  if (type == DType::uint8) return static_cast<const uint8_t*>(zero)[index];
  return 0;
}

// The input element that each axis' tap reads, as an offset from the image; -1 in padding.
struct Taps {
  const ConvGeometry& g;
  const int32_t* sources[3];  // of this output pixel

  int64_t offset(int64_t tap) const {
    int64_t at = 0;
    for (int axis = 2; axis >= 0; --axis) {
      const int32_t source = sources[axis][tap % g.kernel[axis]];
      if (source < 0) return -1;
      at += source * g.x.space[axis];
      tap /= g.kernel[axis];
    }
    return at;
  }
};

template <class X, class W, class Sum, class Y>
void run(const DirectConv& conv, const X* x, const W* w, const void* x_zero, const void* w_zero,
         Y* y, int threads) {
  const ConvGeometry& g = conv.geometry;
  const int64_t in = g.in_per_group(), out = g.out_per_group(), taps = g.taps();
  const Sum zero = Sum(zero_point(conv.x_zero_type, x_zero, 0));
  const auto one = [&](int64_t n, int64_t channel, const Taps& pixel) {
    const int64_t group = channel / out, m = channel % out;
    const int64_t wz = conv.w_zero_per_channel ? channel : 0;
    const Sum w_zero_value = Sum(zero_point(conv.w_zero_type, w_zero, wz));
    const X* image = x + n * g.x.batch + group * in * g.x.channel;
    Sum sum = 0;
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t at = pixel.offset(tap);
      if (at < 0) continue;
      for (int64_t c = 0; c < in; ++c) {
        const int64_t row = g.transposed ? (group * in + c) * out + m : channel * in + c;
        const Sum weight = Sum(w[row * taps + tap]) - w_zero_value;
        sum += (Sum(image[at + c * g.x.channel]) - zero) * weight;
      }
    }
    return sum;
  };
  parallel_for(threads, g.batch * g.out_channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t n = item / g.out_channels, channel = item % g.out_channels;
      Y* to = y + n * g.y.batch + channel * g.y.channel;
      for (int64_t p = 0; p < g.out_pixels(); ++p) {
        const int64_t at[3] = {p / (g.out[1] * g.out[2]), p / g.out[2] % g.out[1], p % g.out[2]};
        Taps pixel{g, {}};
        int64_t offset = 0;
        for (int axis = 0; axis < 3; ++axis) {
          pixel.sources[axis] = conv.sources[axis].data() + at[axis] * g.kernel[axis];
          offset += at[axis] * g.y.space[axis];
        }
        to[offset] = Y(one(n, channel, pixel));
      }
    }
  });
}

// Calls f(Tag<X>, Tag<W>, Tag<Sum>, Tag<Y>) for types that there is code for.
template <class F>
bool with_types(DType x, DType w, DType y, F&& f) {
  if (x == DType::float32 && w == x && y == x) {
    return f(Tag<float>{}, Tag<float>{}, Tag<float>{}, Tag<float>{}), true;
  }
  if (x == DType::float64 && w == x && y == x) {
    return f(Tag<double>{}, Tag<double>{}, Tag<double>{}, Tag<double>{}), true;
  }
  const auto with_w = [&](auto x_tag) {
    if (w == DType::int8) return f(x_tag, Tag<int8_t>{}, Tag<uint32_t>{}, Tag<int32_t>{}), true;
    if (w == DType::uint8) return f(x_tag, Tag<uint8_t>{}, Tag<uint32_t>{}, Tag<int32_t>{}), true;
    return false;
  };
  if (y == DType::int32 && x == DType::int8) return with_w(Tag<int8_t>{});
  if (y == DType::int32 && x == DType::uint8) return with_w(Tag<uint8_t>{});
  return false;
}

}  // namespace

bool direct_conv_takes(DType x, DType w, DType y) {
  return with_types(x, w, y, [](auto, auto, auto, auto) {});
}

void direct_conv(const DirectConv& conv, const void* x, const void* w, const void* x_zero,
                 const void* w_zero, void* y, int threads) {
  const auto typed = [&](auto x_tag, auto w_tag, auto sum_tag, auto y_tag) {
    using X = typename decltype(x_tag)::Type;
    using W = typename decltype(w_tag)::Type;
    using Sum = typename decltype(sum_tag)::Type;
    using Y = typename decltype(y_tag)::Type;
    run<X, W, Sum, Y>(conv, static_cast<const X*>(x), static_cast<const W*>(w), x_zero, w_zero,
                      static_cast<Y*>(y), threads);
  };
  with_types(conv.x_type, conv.w_type, conv.y_type, typed);
}

}  // namespace rlx::cpu
