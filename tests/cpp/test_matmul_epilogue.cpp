// Matrix products with epilogues: chains that the product does itself, Regions on its blocks, and
// Regions behind it.
#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "core/half.h"
#include "tests/cpp/region_builder.h"

namespace rlx::test {
namespace {

constexpr int64_t batch = 3, m = 37, n = 45, k = 20;

using Values = std::vector<double>;
// Writes the epilogue over the product x, a value per column, per row, and for each element.
using Write = std::function<int(RegionBuilder& b, int x, int column, int row, int full)>;
using Expect = std::function<double(double x, double column, double row, double full)>;

Values integers(std::mt19937& random, int64_t count, int low, int high) {
  std::uniform_int_distribution<int> pick(low, high);
  Values values(size_t(count), 0.0);
  for (double& v : values) v = pick(random);
  return values;
}

template <class T>
Tensor as(DType dtype, const Dims& shape, const Values& values, bool constant = false) {
  std::vector<T> stored;
  for (double v : values) stored.push_back(T(v));
  return tensor<T>(dtype, shape, stored, constant);
}

Values product(const Values& a, const Values& b) {
  Values y(size_t(batch * m * n), 0.0);
  for (int64_t i = 0; i < batch * m; ++i)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t c = 0; c < k; ++c) {
        y[size_t(i * n + j)] += a[size_t(i * k + c)] * b[size_t(c * n + j)];
      }
  return y;
}

// A product of [batch, m, k] by [k, n]; A and Y: storage of the operands and of the result.
template <class A, class Y>
void check_epilogue(DType type, DType accumulate, DType y_type, std::string_view force,
                    std::string_view rung, const Write& write, const Expect& expect,
                    double tolerance) {
  std::mt19937 random(11);
  const Values a = integers(random, batch * m * k, -2, 2), b = integers(random, k * n, -2, 2);
  const Values column = integers(random, n, -5, 5), row = integers(random, m, -5, 5);
  const Values full = integers(random, batch * m * n, -9, 9);
  Numbers numbers;
  const Dims shape{batch, m, n};
  RegionBuilder region(numbers, shape);
  const int x = region.load_all(accumulate), by_column = region.load({2});
  const int by_row = region.load({1, 2}), by_element = region.load_all();
  MatMul prim;
  prim.accumulate = accumulate;
  prim.epilogue = region.finish(write(region, x, by_column, by_row, by_element));
  const auto f32 = DType::float32;
  const PrimRun run = run_prim(
      prim, {as<A>(type, {batch, m, k}, a), as<A>(type, {k, n}, b, true), absent(), absent(),
             absent(), absent(), as<float>(f32, {n}, column, true), as<float>(f32, {m, 1}, row),
             as<float>(f32, shape, full)},
      {{y_type, shape, {}, false}}, numbers, 2, force);
  check_equal(run.rung, std::string(rung));
  const Values sums = product(a, b);
  for (size_t i = 0; i < sums.size(); ++i) {
    const double expected = expect(sums[i], column[i % n], row[i / n % m], full[i]);
    const double got = double(run.outputs[0].data<Y>()[i]);
    if (std::abs(got - expected) <= tolerance * std::max(1.0, std::abs(expected))) continue;
    check(false, run.rung + ": " + std::to_string(got) + ", expected " + std::to_string(expected));
  }
}

void check_floats(const Write& write, const Expect& expect, bool is_chain, double tolerance = 0) {
  const auto f32 = DType::float32;
  const std::string_view fused = is_chain ? "gemm + chain" : "gemm + region";
  check_epilogue<float, float>(f32, f32, f32, "", fused, write, expect, tolerance);
  check_epilogue<float, float>(f32, f32, f32, "plain", "plain, region", write, expect, tolerance);
}

using B = RegionBuilder;

const Test chains{"matmul epilogue: chains", [] {
  check_floats([](B& b, int x, int c, int, int) { return b.scalar("add", {x, c}); },
               [](double x, double c, double, double) { return x + c; }, true);
  check_floats([](B& b, int x, int c, int, int f) {
    const int half = b.scalar("mul", {x, b.constant(0.5)});
    const int y = b.scalar("add", {b.scalar("add", {half, c}), f});
    return b.scalar("max", {y, b.constant(0)});
  }, [](double x, double c, double, double f) { return std::max(x / 2 + c + f, 0.0); }, true);
  check_floats([](B& b, int x, int c, int, int f) {
    return b.scalar("add", {b.scalar("gelu", {b.scalar("add", {x, c})}), f});
  }, [](double x, double c, double, double f) {
    return (x + c) * 0.5 * std::erfc(-(x + c) / std::sqrt(2)) + f;
  }, true, 1e-6);
  check_floats([](B& b, int x, int, int, int) {
    return b.scalar("min", {b.scalar("max", {x, b.constant(-3)}), b.constant(5)});
  }, [](double x, double, double, double) { return std::clamp(x, -3.0, 5.0); }, true);
}};

const Test regions{"matmul epilogue: Regions", [] {
  check_floats([](B& b, int x, int, int r, int) { return b.scalar("add", {x, r}); },
               [](double x, double, double r, double) { return x + r; }, false);
  check_floats([](B& b, int x, int c, int r, int f) {
    const int less = b.scalar("lt", {x, f}, DType::boolean);
    return b.scalar("mul", {b.scalar("select", {less, c, r}), x});
  }, [](double x, double c, double r, double f) { return (x < f ? c : r) * x; }, false);
  check_floats([](B& b, int x, int c, int, int) {  // an add behind the activation: no bias
    return b.scalar("add", {b.scalar("tanh", {x}), c});
  }, [](double x, double c, double, double) { return std::tanh(x) + c; }, false, 1e-6);
}};

const Test types{"matmul epilogue: other types of operands and results", [] {
  const Write write = [](B& b, int x, int c, int, int) {
    return b.cast(b.scalar("max", {b.scalar("add", {x, c}), b.constant(0)}), DType::float16);
  };
  const Expect expect = [](double x, double c, double, double) { return std::max(x + c, 0.0); };
  const auto f16 = DType::float16, f32 = DType::float32;
  check_epilogue<Float16, Float16>(f16, f32, f16, "", "gemm + region", write, expect, 0);
  check_epilogue<Float16, Float16>(f16, f32, f16, "plain", "plain, region", write, expect, 0);

  const Write dequantise = [](B& b, int x, int c, int, int) {
    return b.scalar("mul", {b.cast(x, DType::float32), c});
  };
  const Expect scaled = [](double x, double c, double, double) { return x * c; };
  check_epilogue<int8_t, float>(DType::int8, DType::int32, f32, "plain", "plain, region",
                                dequantise, scaled, 0);
  check_epilogue<int32_t, float>(DType::int32, DType::int32, f32, "", "gemm, region", dequantise,
                                 scaled, 0);
}};

const Test batches{"matmul epilogue: a Region under more batch axes than the product has", [] {
  // Broadcasts that alternate cannot be merged: five axes remain.
  const Dims a_batch{2, 1, 2, 1, 2}, b_batch{1, 2, 1, 2, 1}, y_batch{2, 2, 2, 2, 2};
  const auto with = [](Dims shape, int64_t rows, int64_t cols) {
    shape.push_back(rows);
    shape.push_back(cols);
    return shape;
  };
  std::mt19937 random(3);
  const Dims shape = with(y_batch, 2, 3);
  const Values a = integers(random, 8 * 2 * 4, -3, 3), b = integers(random, 4 * 4 * 3, -3, 3);
  Numbers numbers;
  RegionBuilder region(numbers, shape);
  const int x = region.load_all();
  MatMul prim;
  prim.epilogue = region.finish(region.scalar("mul", {x, region.scalar("add", {x, x})}));
  const PrimRun run = run_prim(prim, {as<float>(DType::float32, with(a_batch, 2, 4), a),
                                      as<float>(DType::float32, with(b_batch, 4, 3), b), absent(),
                                      absent(), absent(), absent()},
                               {{DType::float32, shape, {}, false}}, numbers);
  check_equal(run.rung, std::string("gemm, region"));
  for (int64_t i = 0; i < element_count(shape); ++i) {
    const int64_t item = i / 6, row = i / 3 % 2, col = i % 3;  // bits of item: the batch axes
    const int64_t left = (item >> 4) * 4 + (item >> 2 & 1) * 2 + (item & 1);
    const int64_t right = (item >> 3 & 1) * 2 + (item >> 1 & 1);
    double sum = 0;
    for (int64_t c = 0; c < 4; ++c) {
      sum += a[size_t((left * 2 + row) * 4 + c)] * b[size_t((right * 4 + c) * 3 + col)];
    }
    check_equal(double(run.outputs[0].data<float>()[i]), 2 * sum * sum);
  }
}};

}  // namespace
}  // namespace rlx::test
