// Convolutions against the definition: random sizes, every rung and type, exact results.
#include <algorithm>

#include "core/build_info.h"
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
  return tensor<T>(dtype, shape, std::vector<T>(values.begin(), values.end()), constant);
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

}  // namespace
}  // namespace rlx::test
