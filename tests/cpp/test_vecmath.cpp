// Vector math against the C library in double precision, over ranges and at special values.
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "tests/cpp/check.h"
#include "cpu/kernels/exp_falling.h"
#include "cpu/kernels/vecmath.h"

namespace {

using namespace rlx::test;
namespace vecmath = rlx::cpu::vecmath;
using Vec = float __attribute__((vector_size(16)));

constexpr float infinity = std::numeric_limits<float>::infinity();

// Difference in units in the last place of the exact result; 0 below the normal numbers.
double ulps(float got, double exact) {
  const float size = std::fabs(float(exact));
  if (size < 1.2e-38f) return std::fabs(got) < 2.4e-38f ? 0 : 1e9;
  return std::fabs(got - exact) / (std::nextafter(size, infinity) - size);
}

template <class F, class Exact>
void compare(const std::string& name, F f, Exact exact, float low, float high, double limit) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> wide(low, high);
  for (int i = 0; i < 40000; ++i) {
    float x = wide(random);
    if (i % 4 == 0) x = std::ldexp(x, -int(random() % 30));
    const Vec in = vecmath::all<Vec>(x);
    const Vec got = f(in);
    const double worst = std::max(ulps(got[0], exact(double{x})), ulps(got[3], exact(double{x})));
    check(worst <= limit, name + "(" + std::to_string(x) + "): " + std::to_string(worst) + " ulp");
  }
}

template <class F>
float at(F f, float x) {
  return f(vecmath::all<Vec>(x))[1];
}

const auto exp_of = [](Vec x) { return vecmath::exp(x); };
const auto exp_falling_of = [](Vec x) { return vecmath::exp_falling(x); };
const auto log_of = [](Vec x) { return vecmath::log(x); };
const auto tanh_of = [](Vec x) { return vecmath::tanh(x); };
const auto erf_of = [](Vec x) { return vecmath::erf(x); };
const auto sigmoid_of = [](Vec x) { return vecmath::sigmoid(x); };
const auto silu_of = [](Vec x) { return vecmath::silu(x); };
const auto gelu_erf_of = [](Vec x) { return vecmath::gelu_erf(x); };
const auto gelu_tanh_of = [](Vec x) { return vecmath::gelu_tanh(x); };

double exact_gelu_tanh(double x) {
  const double v = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
  return x / (1 + std::exp(-2 * v));
}

Test accuracy{"vecmath accuracy", [] {
  compare("exp", exp_of, [](double x) { return std::exp(x); }, -86, 88.7f, 1);
  compare("exp_falling", exp_falling_of, [](double x) { return std::exp(x); }, -87.2f, 0, 3);
  compare("log", log_of, [](double x) { return std::log(x); }, 1e-38f, 1e30f, 1);
  compare("log", log_of, [](double x) { return std::log(x); }, 0.5f, 2, 1);
  compare("tanh", tanh_of, [](double x) { return std::tanh(x); }, -10, 10, 2);
  compare("erf", erf_of, [](double x) { return std::erf(x); }, -5, 5, 3);
  compare("sigmoid", sigmoid_of, [](double x) { return 1 / (1 + std::exp(-x)); }, -80, 20, 3);
  compare("silu", silu_of, [](double x) { return x / (1 + std::exp(-x)); }, -80, 20, 3);
  const auto exact_gelu = [](double x) { return x / 2 * std::erfc(-x * std::sqrt(0.5)); };
  compare("gelu_erf", gelu_erf_of, exact_gelu, -10, 10, 8);
  compare("gelu_tanh", gelu_tanh_of, exact_gelu_tanh, -2, 8, 8);
}};

Test special{"vecmath special values", [] {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  check_equal(at(exp_of, 0), 1.0f);
  check_equal(at(exp_of, infinity), infinity);
  check_equal(at(exp_of, 89), infinity);
  check_equal(at(exp_of, -infinity), 0.0f);
  check(at(exp_of, -100) > 0 && at(exp_of, -100) < 1e-43f, "exp keeps subnormal results");
  check_equal(at(exp_falling_of, 0), 1.0f);
  check_equal(at(exp_falling_of, -88), 0.0f);
  check_equal(at(exp_falling_of, -1e30f), 0.0f);
  check_equal(at(exp_falling_of, -infinity), 0.0f);
  check(std::isnan(at(exp_falling_of, nan)), "NaN through exp_falling");
  check_equal(at(log_of, 0), -infinity);
  check_equal(at(log_of, infinity), infinity);
  check(std::isnan(at(log_of, -1)), "log of a negative number");
  check(std::fabs(at(log_of, 1e-45f) + 103.27893f) < 1e-4f, "log of a subnormal number");
  check_equal(at(tanh_of, -infinity), -1.0f);
  check_equal(at(erf_of, infinity), 1.0f);
  check(std::signbit(at(tanh_of, -0.0f)) && std::signbit(at(erf_of, -0.0f)), "negative zero");
  check_equal(at(sigmoid_of, -infinity), 0.0f);
  check_equal(at(gelu_erf_of, infinity), infinity);
  check_equal(at(gelu_tanh_of, 3e38f), 3e38f);
  check(std::isnan(at(exp_of, nan)) && std::isnan(at(log_of, nan)), "NaN through exp, log");
  check(std::isnan(at(tanh_of, nan)) && std::isnan(at(erf_of, nan)), "NaN through tanh, erf");
  check(std::isnan(at(gelu_erf_of, nan)) && std::isnan(at(silu_of, nan)), "NaN through gelu, silu");
}};

}  // namespace
