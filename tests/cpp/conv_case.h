// Random convolutions with small integer values, so that every type must give the exact result.
#pragma once

#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cpp/select_harness.h"

namespace rlx::test {

struct ConvCase {
  int spatial = 2;
  int64_t batch = 1, groups = 1, in_per_group = 1, out_per_group = 1;
  int64_t in[3] = {1, 1, 1}, kernel[3] = {1, 1, 1}, begin[3] = {}, end[3] = {}, extra[3] = {};
  int stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1};
  bool transposed = false, channels_last = false, constant_weights = true;

  int64_t channels() const { return groups * in_per_group; }
  int64_t features() const { return groups * out_per_group; }
  int64_t out(int k) const {  // ONNX Conv and ConvTranspose; `extra` is output_padding
    const int64_t reach = (kernel[k] - 1) * dilation[k] + 1;
    if (transposed) return (in[k] - 1) * stride[k] + reach + extra[k] - begin[k] - end[k];
    return (in[k] + begin[k] + end[k] - reach) / stride[k] + 1;
  }
  std::string text() const {
    std::ostringstream s;
    s << (transposed ? "transposed " : "") << (channels_last ? "nhwc" : "nchw") << " n" << batch
      << " g" << groups << " c" << in_per_group << " m" << out_per_group;
    for (int k = 0; k < spatial; ++k) {
      s << " [in " << in[k] << " k" << kernel[k] << " s" << stride[k] << " d" << dilation[k]
        << " p" << begin[k] << ',' << end[k] << " e" << extra[k] << ']';
    }
    return s.str();
  }
};

inline ConvCase random_case(std::mt19937& random) {
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  ConvCase c;
  c.spatial = int(pick(1, 3));
  c.batch = pick(1, 2);
  c.transposed = pick(0, 3) == 0;
  c.channels_last = pick(0, 3) != 0;
  c.constant_weights = pick(0, 1);
  const int64_t grouping = pick(0, 3);  // 0, 1: none; 2: groups; 3: depthwise
  c.groups = grouping == 2 ? pick(2, 4) : grouping == 3 ? pick(1, 40) : 1;
  c.in_per_group = grouping == 3 ? 1 : pick(1, 20);
  c.out_per_group = grouping == 3 ? pick(1, 2) : pick(1, 20);
  for (int k = 0; k < c.spatial; ++k) {
    do {
      c.in[k] = pick(1, c.spatial == 3 ? 6 : 12);
      c.kernel[k] = pick(1, 4);
      c.stride[k] = int(pick(1, 3));
      c.dilation[k] = int(pick(1, 2));
      c.begin[k] = pick(0, 3);
      c.end[k] = pick(0, 3);
      c.extra[k] = c.transposed ? pick(0, c.stride[k] - 1) : 0;
    } while (c.in[k] + c.begin[k] + c.end[k] < (c.kernel[k] - 1) * c.dilation[k] + 1 ||
             c.out(k) < 1);
  }
  return c;
}

inline Dims image_shape(const ConvCase& c, int64_t channels, bool output) {
  Dims shape{c.batch};
  if (!c.channels_last) shape.push_back(channels);
  for (int k = 0; k < c.spatial; ++k) shape.push_back(output ? c.out(k) : c.in[k]);
  if (c.channels_last) shape.push_back(channels);
  return shape;
}

inline Dims weight_shape(const ConvCase& c) {
  Dims shape;
  if (c.transposed) shape = {c.channels(), c.out_per_group};
  else shape = {c.features(), c.in_per_group};
  for (int k = 0; k < c.spatial; ++k) shape.push_back(c.kernel[k]);
  return shape;
}

inline Conv conv_prim(const ConvCase& c, Numbers& numbers) {
  Conv prim;
  for (int k = 0; k < c.spatial; ++k) {
    prim.strides.push_back(c.stride[k]);
    prim.dilations.push_back(c.dilation[k]);
    prim.pads_begin.push_back(numbers(c.begin[k]));
    prim.pads_end.push_back(numbers(c.end[k]));
  }
  prim.groups = int(c.groups);
  prim.transposed = c.transposed;
  prim.channels_last = c.channels_last;
  return prim;
}

// Where channel `ch` at `at` (spatial) of image `n` is.
inline int64_t image_index(const ConvCase& c, const Dims& shape, int64_t n, int64_t ch,
                           const int64_t* at) {
  int64_t index = n;
  if (!c.channels_last) index = index * shape[1] + ch;
  for (int k = 0; k < c.spatial; ++k) {
    index = index * shape[size_t(c.channels_last ? 1 + k : 2 + k)] + at[k];
  }
  return c.channels_last ? index * shape[shape.size() - 1] + ch : index;
}

// Runs over every point of `extent` (three axes).
template <class F>
void each_point(const int64_t* extent, F&& f) {
  int64_t at[3];
  for (at[0] = 0; at[0] < extent[0]; ++at[0])
    for (at[1] = 0; at[1] < extent[1]; ++at[1])
      for (at[2] = 0; at[2] < extent[2]; ++at[2]) f(at);
}

// The definition, from the side of the larger image: Conv reads and ConvTranspose writes the
// position small * stride - begin + tap * dilation of it.
inline std::vector<double> reference_conv(const ConvCase& c, const std::vector<double>& x,
                                          const std::vector<double>& w) {
  const Dims xs = image_shape(c, c.channels(), false), ys = image_shape(c, c.features(), true);
  std::vector<double> y(size_t(element_count(ys)), 0.0);
  const int64_t outs[3] = {c.out(0), c.spatial > 1 ? c.out(1) : 1, c.spatial > 2 ? c.out(2) : 1};
  const int64_t* small = c.transposed ? c.in : outs;
  const int64_t* large = c.transposed ? outs : c.in;
  const int64_t taps = c.kernel[0] * c.kernel[1] * c.kernel[2];
  each_point(small, [&](const int64_t* at) {
    int64_t tap = -1;
    each_point(c.kernel, [&](const int64_t* k) {
      ++tap;
      int64_t other[3];
      for (int i = 0; i < 3; ++i) {
        other[i] = at[i] * c.stride[i] - c.begin[i] + k[i] * c.dilation[i];
        if (other[i] < 0 || other[i] >= large[i]) return;
      }
      for (int64_t n = 0; n < c.batch; ++n) {
        for (int64_t m = 0; m < c.features(); ++m) {
          const int64_t group = m / c.out_per_group;
          for (int64_t i = 0; i < c.in_per_group; ++i) {
            const int64_t ch = group * c.in_per_group + i;
            const int64_t row = c.transposed ? ch * c.out_per_group + m % c.out_per_group
                                             : m * c.in_per_group + i;
            const int64_t from = image_index(c, xs, n, ch, c.transposed ? at : other);
            const int64_t to = image_index(c, ys, n, m, c.transposed ? other : at);
            y[size_t(to)] += x[size_t(from)] * w[size_t(row * taps + tap)];
          }
        }
      }
    });
  });
  return y;
}

}  // namespace rlx::test
