// Pooling against the definition: random windows, layouts and types, exact where sums are.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <sstream>

#include "tests/cpp/select_harness.h"

namespace rlx::test {
namespace {

struct PoolCase {
  PoolKind kind = PoolKind::max;
  int spatial = 2, p = 2, storage_order = 0;
  int64_t batch = 1, channels = 1;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, begin[3] = {}, end[3] = {};
  int kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1};
  bool channels_last = false, count_include_pad = false;

  std::string text() const {
    std::ostringstream s;
    s << "kind " << int(kind) << (channels_last ? " nhwc" : " nchw") << " n" << batch << " c"
      << channels << " p" << p << " order " << storage_order << " include " << count_include_pad;
    for (int k = 0; k < spatial; ++k) {
      s << " [in " << in[k] << " out " << out[k] << " k" << kernel[k] << " s" << stride[k] << " d"
        << dilation[k] << " p" << begin[k] << ',' << end[k] << ']';
    }
    return s.str();
  }
  Dims shape(const int64_t* space) const {
    Dims made{batch};
    if (!channels_last) made.push_back(channels);
    for (int k = 0; k < spatial; ++k) made.push_back(space[k]);
    if (channels_last) made.push_back(channels);
    return made;
  }
  int64_t index(const int64_t* space, int64_t n, int64_t c, const int64_t* at) const {
    const int64_t pixels = space[0] * space[1] * space[2];
    const int64_t pixel = (at[0] * space[1] + at[1]) * space[2] + at[2];
    if (channels_last) return (n * pixels + pixel) * channels + c;
    return (n * channels + c) * pixels + pixel;
  }
};

PoolCase random_case(std::mt19937& random) {
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  PoolCase c;
  c.kind = PoolKind(pick(0, 2));
  c.spatial = int(pick(1, 3));
  c.p = int(pick(1, 3));
  c.storage_order = int(pick(0, 1));
  c.batch = pick(1, 2);
  c.channels = pick(1, 70);
  c.channels_last = pick(0, 1);
  c.count_include_pad = pick(0, 1);
  const bool ceil = pick(0, 1);
  for (int k = 0; k < c.spatial; ++k) {
    int64_t room;
    do {
      c.in[k] = pick(1, c.spatial == 1 ? 60 : 9);
      c.kernel[k] = int(pick(1, 4));
      c.stride[k] = int(pick(1, 3));
      c.dilation[k] = int(pick(1, 2));
      c.begin[k] = pick(0, c.kernel[k] - 1);
      c.end[k] = pick(0, c.kernel[k] - 1);
      room = c.in[k] + c.begin[k] + c.end[k] - (c.kernel[k] - 1) * c.dilation[k] - 1;
    } while (room < 0);
    c.out[k] = (room + (ceil ? c.stride[k] - 1 : 0)) / c.stride[k] + 1;
    if (ceil && (c.out[k] - 1) * c.stride[k] >= c.in[k] + c.begin[k]) --c.out[k];
  }
  return c;
}

template <class F>
void each_point(const int64_t* extent, F&& f) {
  int64_t at[3];
  for (at[0] = 0; at[0] < extent[0]; ++at[0])
    for (at[1] = 0; at[1] < extent[1]; ++at[1])
      for (at[2] = 0; at[2] < extent[2]; ++at[2]) f(at);
}

struct Expected {
  double value;
  int64_t index;
};

// ONNX's text: taps in the input take part; an average divides by the taps in the input, or in
// the padded input.
Expected window(const PoolCase& c, const std::vector<double>& x, int64_t n, int64_t ch,
                const int64_t* at) {
  Expected best{-std::numeric_limits<double>::infinity(), 0};
  double sum = 0, powers = 0;
  int64_t inside = 0, padded = 0;
  const int64_t taps[3] = {c.kernel[0], c.kernel[1], c.kernel[2]};
  each_point(taps, [&](const int64_t* tap) {
    int64_t from[3];
    bool in = true, in_padded = true;
    for (int k = 0; k < 3; ++k) {
      from[k] = at[k] * c.stride[k] - c.begin[k] + tap[k] * c.dilation[k];
      in = in && from[k] >= 0 && from[k] < c.in[k];
      in_padded = in_padded && from[k] < c.in[k] + c.end[k];
    }
    padded += in_padded;
    if (!in) return;
    ++inside;
    const double value = x[size_t(c.index(c.in, n, ch, from))];
    sum += value;
    powers += std::pow(std::abs(value), c.p);
    if (value <= best.value) return;
    const int64_t* e = c.in;
    const int64_t rows[3] = {e[1] * e[2], e[2], 1}, columns[3] = {1, e[0], e[0] * e[1]};
    best = {value, (n * c.channels + ch) * e[0] * e[1] * e[2]};
    for (int k = 0; k < 3; ++k) best.index += from[k] * (c.storage_order ? columns : rows)[k];
  });
  if (c.kind == PoolKind::lp) return {std::pow(powers, 1.0 / c.p), 0};
  if (c.kind == PoolKind::max) return best;
  return {sum / double(std::max<int64_t>(c.count_include_pad ? padded : inside, 1)), 0};
}

template <class T>
void check_case(const PoolCase& c, DType dtype, std::mt19937& random, bool indices, int threads,
                std::string_view force) {
  std::uniform_int_distribution<int> pick(std::is_unsigned_v<T> ? 0 : -100, 100);
  std::vector<double> x(size_t(element_count(c.shape(c.in))), 0.0);
  for (double& v : x) v = pick(random);
  Numbers numbers;
  Pool prim{c.kind, {}, {}, {}, {}, {}, c.count_include_pad, c.p, c.storage_order, c.channels_last};
  for (int k = 0; k < c.spatial; ++k) {
    prim.kernel.push_back(c.kernel[k]);
    prim.strides.push_back(c.stride[k]);
    prim.dilations.push_back(c.dilation[k]);
    prim.pads_begin.push_back(numbers(c.begin[k]));
    prim.pads_end.push_back(numbers(c.end[k]));
  }
  const Dims shape = c.shape(c.out);
  const PrimRun run = run_prim(
      prim, {tensor<T>(dtype, c.shape(c.in), std::vector<T>(x.begin(), x.end()))},
      {{dtype, shape, {}, false}, {indices ? DType::int64 : DType::none, shape, {}, false}},
      numbers, threads, force);
  for (int64_t n = 0; n < c.batch; ++n) {
    for (int64_t ch = 0; ch < c.channels; ++ch) {
      each_point(c.out, [&](const int64_t* at) {
        Expected expected = window(c, x, n, ch, at);
        if (std::is_integral_v<T> && std::isinf(expected.value)) {
          expected.value = double(std::numeric_limits<T>::lowest());  // a window of padding only
        }
        const size_t i = size_t(c.index(c.out, n, ch, at));
        const double got = double(run.outputs[0].data<T>()[i]);
        const double near = c.kind == PoolKind::max ? 0 : 1e-6 * std::abs(expected.value);
        check(std::abs(got - expected.value) <= near || got == expected.value,
              c.text() + ": got " + std::to_string(got) + ", expected " +
                  std::to_string(expected.value));
        if (indices) check_equal(run.outputs[1].data<int64_t>()[i], expected.index);
      });
    }
  }
}

const Test floats{"pool: float32 and float64", [] {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const std::string_view force = i % 4 == 0 ? "plain" : "";
    check_case<float>(random_case(random), DType::float32, random, false, 1 + i % 2, force);
    check_case<double>(random_case(random), DType::float64, random, false, 1, force);
  }
}};

const Test bytes{"pool: maximum of int8 and uint8", [] {
  std::mt19937 random(2);
  for (int i = 0; i < 60; ++i) {
    PoolCase c = random_case(random);
    c.kind = PoolKind::max;
    check_case<int8_t>(c, DType::int8, random, i % 3 == 0, 1, "");
    check_case<uint8_t>(c, DType::uint8, random, false, 1, "");
  }
}};

const Test with_indices{"pool: indices of the maxima", [] {
  std::mt19937 random(3);
  for (int i = 0; i < 60; ++i) {
    PoolCase c = random_case(random);
    c.kind = PoolKind::max;
    check_case<float>(c, DType::float32, random, true, 1 + i % 2, "");
  }
}};

const Test nan{"pool: a NaN stays the maximum", [] {
  for (bool channels_last : {false, true}) {
    std::vector<float> x(40, 1.0f);
    x[20] = std::numeric_limits<float>::quiet_NaN();
    Numbers numbers;
    const ExprId zero = numbers(0);
    const Pool prim{PoolKind::max, {3}, {1}, {1}, {zero}, {zero}, false, 2, 0, channels_last};
    const Dims in = channels_last ? Dims{1, 40, 1} : Dims{1, 1, 40};
    const Dims out = channels_last ? Dims{1, 38, 1} : Dims{1, 1, 38};
    const PrimRun run = run_prim(prim, {tensor<float>(DType::float32, in, x)},
                                 {{DType::float32, out, {}, false}}, numbers);
    for (int i = 0; i < 38; ++i) {
      check_equal(std::isnan(run.outputs[0].data<float>()[i]), i >= 18 && i <= 20);
    }
  }
}};

}  // namespace
}  // namespace rlx::test
