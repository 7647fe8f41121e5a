// Convolutions against the definition: random sizes, every rung and type, exact results.
#include <algorithm>

#include "core/build_info.h"
#include "core/half.h"
#include "cpu/kernels/conv_parts.h"
#include "tests/cpp/conv_case.h"

namespace rlx::test {
namespace {

std::vector<double> small_integers(std::mt19937& random, int64_t count, int low, int high) {
  std::uniform_int_distribution<int> pick(low, high);
  std::vector<double> values(size_t(count), 0.0);
  for (double& v : values) v = pick(random);
  return values;
}

template <class T>
Tensor cast(DType dtype, const Dims& shape, const std::vector<double>& values,
            bool constant = false) {
  std::vector<T> stored;
  for (double v : values) stored.push_back(T(v));
  return tensor<T>(dtype, shape, stored, constant);
}

template <class T>
void check_exact(const Tensor& got, const std::vector<double>& expected, const std::string& what) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const double value = double(got.data<T>()[i]);
    if (value == expected[i]) continue;
    std::ostringstream text;
    text << what << ": element " << i << " is " << value << ", expected " << expected[i];
    check(false, text.str());
  }
}

template <class T>
std::string check_case(const ConvCase& c, DType dtype, std::mt19937& random, int threads,
                       std::string_view force) {
  const Dims xs = image_shape(c, c.channels(), false), ws = weight_shape(c);
  const auto x = small_integers(random, element_count(xs), -8, 8);
  const auto w = small_integers(random, element_count(ws), -8, 8);
  Numbers numbers;
  const Conv prim = conv_prim(c, numbers);
  const PrimRun run = run_prim(
      prim, {cast<T>(dtype, xs, x), cast<T>(dtype, ws, w, c.constant_weights), absent(), absent()},
      {{dtype, image_shape(c, c.features(), true), {}, false}}, numbers, threads, force);
  check_exact<T>(run.outputs[0], reference_conv(c, x, w), c.text() + " by " + run.rung);
  return run.rung;
}

// Values whose sums every type holds: few of them are not 0.
template <class T>
void check_small(const ConvCase& c, DType dtype, std::mt19937& random, std::string_view force) {
  const Dims xs = image_shape(c, c.channels(), false), ws = weight_shape(c);
  auto x = small_integers(random, element_count(xs), -20, 20);
  auto w = small_integers(random, element_count(ws), -20, 20);
  for (double& v : x) v = v > 18 ? 1 : v < -18 ? -1 : 0;
  for (double& v : w) v = v > 10 ? 2 : v < -10 ? -1 : 0;
  Numbers numbers;
  const PrimRun run = run_prim(conv_prim(c, numbers),
                               {cast<T>(dtype, xs, x), cast<T>(dtype, ws, w, c.constant_weights),
                                absent(), absent()},
                               {{dtype, image_shape(c, c.features(), true), {}, false}}, numbers, 1,
                               force);
  check_exact<T>(run.outputs[0], reference_conv(c, x, w), c.text() + " by " + run.rung);
}

const Test any_rung{"conv: float32 by the rung that select picks", [] {
  std::mt19937 random(1);
  bool gemm = false, depthwise = false, onednn = false;
  for (int i = 0; i < 300; ++i) {
    const std::string rung =
        check_case<float>(random_case(random), DType::float32, random, 1 + i % 2, "");
    gemm = gemm || rung.starts_with("gemm");
    depthwise = depthwise || rung.starts_with("depthwise");
    onednn = onednn || rung.starts_with("onednn");
  }
  check(gemm && depthwise && onednn == build_info().onednn, "a rung is never picked");
}};

// Large enough to be cut into parts: rows, images, and transposed ones.
const Test parts{"conv: float32 by several threads", [] {
  std::mt19937 random(6);
  int cut = 0;
  for (int i = 0; i < 80; ++i) {
    ConvCase c = random_case(random);
    c.groups = 1;
    c.in_per_group = 16 + i % 5;
    c.out_per_group = 24;
    c.batch = 1 + i % 5;
    for (int k = 0; k < c.spatial; ++k) c.in[k] += c.spatial == 1 ? 1500 : c.spatial == 2 ? 30 : 6;
    c.channels_last = true;
    check_case<float>(c, DType::float32, random, 2 + i % 5, "");
    cpu::ConvGeometry g;
    g.batch = c.batch;
    g.in_channels = c.in_per_group;
    g.out_channels = c.out_per_group;
    g.transposed = c.transposed;
    for (int k = 0; k < c.spatial; ++k) {
      const int axis = 3 - c.spatial + k;
      g.in[axis] = c.in[k];
      g.out[axis] = c.out(k);
      g.kernel[axis] = c.kernel[k];
      g.stride[axis] = c.stride[k];
      g.dilation[axis] = c.dilation[k];
      g.pad[axis] = c.begin[k];
    }
    const auto found = cpu::conv_parts(g, 2 + i % 5);
    int64_t pixels = 0;
    for (const auto& part : found) pixels += part.geometry.batch * part.geometry.out_pixels();
    check_equal(pixels, g.batch * g.out_pixels());
    cut += found.size() > 1;
  }
  check(cut > 60, "most are cut");
}};

const Test plain_loops{"conv: float32 by the plain loops", [] {
  std::mt19937 random(2);
  for (int i = 0; i < 200; ++i) {
    check_case<float>(random_case(random), DType::float32, random, 1 + i % 2, "direct");
  }
}};

const Test products{"conv: float32 by matrix products", [] {
  std::mt19937 random(4);
  for (int i = 0; i < 200; ++i) {
    check_case<float>(random_case(random), DType::float32, random, 1 + i % 2, "gemm");
  }
}};

const Test doubles{"conv: float64", [] {
  std::mt19937 random(3);
  for (int i = 0; i < 50; ++i) {
    check_case<double>(random_case(random), DType::float64, random, 1, "");
  }
}};

const Test halves{"conv: float16 and bfloat16", [] {
  std::mt19937 random(5);
  for (int i = 0; i < 60; ++i) {
    const std::string_view force = i % 3 == 0 ? "direct" : "";
    check_small<Float16>(random_case(random), DType::float16, random, force);
    check_small<Bfloat16>(random_case(random), DType::bfloat16, random, force);
  }
}};

const Test refusals{"conv: geometry that cannot be is refused", [] {
  const auto run = [](auto change) {
    ConvCase c;
    c.groups = 2, c.in_per_group = 2, c.out_per_group = 2;
    c.in[0] = c.in[1] = 4;
    Numbers numbers;
    Conv prim = conv_prim(c, numbers);
    change(prim);
    const std::vector<double> x(64, 1.0), w(8, 1.0);
    run_prim(prim, {cast<float>(DType::float32, {1, 4, 4, 4}, x),
                    cast<float>(DType::float32, {4, 2, 1, 1}, w), absent(), absent()},
             {{DType::float32, {1, 4, 4, 4}, {}, false}}, numbers);
  };
  run([](Conv&) {});
  check_throws<Error>([&] { run([](Conv& c) { c.strides[0] = 0; }); }, "positive");
  check_throws<Error>([&] { run([](Conv& c) { c.dilations[1] = -1; }); }, "positive");
  check_throws<Error>([&] { run([](Conv& c) { c.groups = 3; }); }, "channels");
}};

}  // namespace
}  // namespace rlx::test
