// Convolutions with epilogues: the named chains in the order they were written, and other Regions.
#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/cpp/conv_case.h"
#include "tests/cpp/region_builder.h"

namespace rlx::test {
namespace {

// Writes the epilogue on `x`; `channel` and `full` are loads.
using Write = std::function<int(RegionBuilder& b, int x, int channel, int full)>;
using Expect = std::function<double(double x, double channel, double full)>;

std::vector<double> integers(std::mt19937& random, int64_t count, int low, int high) {
  std::uniform_int_distribution<int> pick(low, high);
  std::vector<double> values(size_t(count), 0.0);
  for (double& v : values) v = pick(random);
  return values;
}

Tensor floats(const Dims& shape, const std::vector<double>& values, bool constant) {
  return tensor<float>(DType::float32, shape, {values.begin(), values.end()}, constant);
}

struct Way {
  bool channels_last;
  int64_t groups;
  std::string_view force, rung;  // rung: a part of the name of what must run
};

// A convolution whose sums are small integers, with one per-channel and one full extra.
void check_epilogue(const Way& way, const Write& write, const Expect& expect, double tolerance) {
  std::mt19937 random(7);
  ConvCase c;
  c.batch = 2;
  c.groups = way.groups;
  c.in_per_group = way.groups == 19 ? 1 : 5, c.out_per_group = 19 / way.groups;
  for (int k = 0; k < 2; ++k) c.in[k] = 9 - k, c.kernel[k] = 3, c.begin[k] = 1;
  const bool channels_last = c.channels_last = way.channels_last;
  const Dims xs = image_shape(c, c.channels(), false), ys = image_shape(c, c.features(), true);
  const auto channels = c.features();
  const auto x = integers(random, element_count(xs), -2, 2);
  const auto w = integers(random, element_count(weight_shape(c)), -2, 2);
  const auto channel = integers(random, channels, -5, 5);
  const auto full = integers(random, element_count(ys), -9, 9);

  Numbers numbers;
  Conv prim = conv_prim(c, numbers);
  RegionBuilder region(numbers, ys);
  const int product = region.load_all(), per_channel = region.load(
      channels_last ? std::vector<int>{3} : std::vector<int>{1, 2, 3});
  prim.epilogue = region.finish(write(region, product, per_channel, region.load_all()));
  const Dims channel_shape = channels_last ? Dims{channels} : Dims{channels, 1, 1};
  const PrimRun run = run_prim(
      prim, {floats(xs, x, false), floats(weight_shape(c), w, true), absent(), absent(),
             floats(channel_shape, channel, true), floats(ys, full, false)},
      {{DType::float32, ys, {}, false}}, numbers, 2, way.force);
  check(run.rung.find(way.rung) != std::string::npos, run.rung);

  const std::vector<double> sums = reference_conv(c, x, w);
  const int64_t inner = channels_last ? 1 : c.out(0) * c.out(1);
  for (size_t i = 0; i < sums.size(); ++i) {
    const double expected = expect(sums[i], channel[i / size_t(inner) % size_t(channels)], full[i]);
    const double got = run.outputs[0].data<float>()[i];
    if (std::abs(got - expected) <= tolerance * std::max(1.0, std::abs(expected))) continue;
    check(false, run.rung + ": " + std::to_string(got) + ", expected " + std::to_string(expected));
  }
}

struct Chain {
  const char* name;
  Write write;
  Expect expect;
  double tolerance;
};

const std::vector<Chain>& chains() {
  using B = RegionBuilder;
  const auto relu = [](B& b, int x) { return b.scalar("max", {x, b.constant(0)}); };
  static const std::vector<Chain> all = {
      {"bias", [](B& b, int x, int c, int) { return b.scalar("add", {c, x}); },
       [](double x, double c, double) { return x + c; }, 0},
      {"bias, relu", [=](B& b, int x, int c, int) { return relu(b, b.scalar("add", {x, c})); },
       [](double x, double c, double) { return std::max(x + c, 0.0); }, 0},
      {"residual, bias, relu",
       [=](B& b, int x, int c, int f) {
         return relu(b, b.scalar("add", {b.scalar("add", {x, f}), c}));
       },
       [](double x, double c, double f) { return std::max(x + f + c, 0.0); }, 0},
      {"bias, relu, residual",
       [=](B& b, int x, int c, int f) {
         return b.scalar("add", {f, relu(b, b.scalar("add", {x, c}))});
       },
       [](double x, double c, double f) { return f + std::max(x + c, 0.0); }, 0},
      {"relu, bias: the add is not a bias",
       [=](B& b, int x, int c, int) { return b.scalar("add", {relu(b, x), c}); },
       [](double x, double c, double) { return std::max(x, 0.0) + c; }, 0},
      {"scale, minus residual, clip",
       [](B& b, int x, int c, int f) {
         const int y = b.scalar("sub", {b.scalar("mul", {x, c}), f});
         return b.scalar("min", {b.scalar("max", {y, b.constant(-20)}), b.constant(6)});
       },
       [](double x, double c, double f) { return std::clamp(x * c - f, -20.0, 6.0); }, 0},
      {"leaky relu of a negation",
       [](B& b, int x, int c, int) {
         const int y = b.scalar("sub", {b.constant(3), b.scalar("add", {x, c})});
         const int less = b.scalar("lt", {y, b.constant(0)}, DType::boolean);
         return b.scalar("select", {less, b.scalar("mul", {y, b.constant(0.25)}), y});
       },
       [](double x, double c, double) { return 3 - x - c < 0 ? (3 - x - c) / 4 : 3 - x - c; }, 0},
      {"hard swish",
       [](B& b, int x, int, int) {
         const int y = b.scalar("add", {b.scalar("mul", {x, b.constant(0.125)}), b.constant(0.5)});
         const int gate = b.scalar("max", {b.scalar("min", {y, b.constant(1)}), b.constant(0)});
         return b.scalar("mul", {x, gate});
       },
       [](double x, double, double) { return x * std::clamp(x / 8 + 0.5, 0.0, 1.0); }, 0},
      {"silu", [](B& b, int x, int, int) { return b.scalar("silu", {x}); },
       [](double x, double, double) { return x / (1 + std::exp(-x)); }, 1e-6},
      {"gelu", [](B& b, int x, int, int) { return b.scalar("gelu", {x}); },
       [](double x, double, double) { return x * 0.5 * std::erfc(-x / std::sqrt(2)); }, 1e-6},
      {"sigmoid", [](B& b, int x, int, int) { return b.scalar("sigmoid", {x}); },
       [](double x, double, double) { return 1 / (1 + std::exp(-x)); }, 1e-6},
      {"tanh", [](B& b, int x, int, int) { return b.scalar("tanh", {x}); },
       [](double x, double, double) { return std::tanh(x); }, 1e-6},
  };
  return all;
}

// Regions that are no chain of named operations.
const std::vector<Chain>& others() {
  using B = RegionBuilder;
  static const std::vector<Chain> all = {
      {"the product twice", [](B& b, int x, int c, int) {
         return b.scalar("mul", {b.scalar("add", {x, c}), b.scalar("sub", {x, c})});
       },
       [](double x, double c, double) { return (x + c) * (x - c); }, 0},
      {"a comparison of both extras", [](B& b, int x, int c, int f) {
         const int less = b.scalar("lt", {c, f}, DType::boolean);
         return b.scalar("select", {less, x, b.constant(7)});
       },
       [](double x, double c, double f) { return c < f ? x : 7; }, 0},
  };
  return all;
}

void check_all(const std::vector<Chain>& all, const Way& way) {
  for (const Chain& chain : all) {
    try {
      check_epilogue(way, chain.write, chain.expect, chain.tolerance);
    } catch (const Failure& failure) {
      throw Failure(std::string(chain.name) + ": " + failure.what());
    }
  }
}

const Test named{"conv epilogue: named chains", [] {
  check_all(chains(), {true, 1, "", "onednn"});
  check_all(chains(), {false, 1, "", "in nhwc"});
  check_all(chains(), {true, 1, "gemm", "gemm"});
  check_all(chains(), {true, 19, "depthwise", "depthwise"});
  check_all(chains(), {false, 1, "direct", "direct + region"});
}};

const Test regions{"conv epilogue: other Regions", [] {
  check_all(others(), {true, 1, "", "+ region"});
  check_all(others(), {false, 1, "", "in nhwc + region"});
  check_all(others(), {true, 1, "gemm", "gemm + region"});
  check_all(others(), {true, 4, "gemm", "gemm + region"});
  check_all(others(), {false, 1, "gemm", "gemm in nhwc + region"});
  check_all(others(), {true, 1, "direct", "direct + region"});
}};

}  // namespace
}  // namespace rlx::test
