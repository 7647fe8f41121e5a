// Operands, execution and plain reference sums of the matrix product tests.
#include "tests/cpp/gemm_cases.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <sstream>

#include "tests/cpp/check.h"

namespace rlx::test {
namespace {

using cpu::Activation;
using Real = long double;

Real read_float16(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const Real size = exponent ? std::ldexp(Real(1024 + fraction), exponent - 25)
                             : std::ldexp(Real(fraction), -24);
  return bits & 0x8000 ? -size : size;
}

// A tensor of some type with rows of `ld` elements.
struct Tensor {
  DType type = DType::float32;
  std::vector<char> bytes;

  Tensor(DType t, int64_t count) : type(t), bytes(size_t(count + 1) * size_of(t)) {}

  template <class T>
  T raw(int64_t i) const {
    T value;
    std::memcpy(&value, bytes.data() + i * int64_t(sizeof(T)), sizeof(T));
    return value;
  }

  Real real(int64_t i) const {
    switch (type) {
      case DType::float32: return raw<float>(i);
      case DType::float64: return raw<double>(i);
      case DType::float16: return read_float16(raw<uint16_t>(i));
      default: return std::bit_cast<float>(uint32_t{raw<uint16_t>(i)} << 16);
    }
  }

  uint64_t integer(int64_t i) const {
    return size_of(type) == 4 ? raw<uint32_t>(i) : raw<uint64_t>(i);
  }

  void fill(std::mt19937_64& random) {
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (size_t at = 0; at < bytes.size(); at += size_of(type)) {
      if (is_integer(type)) {
        const uint64_t bits = random();
        std::memcpy(&bytes[at], &bits, size_of(type));
      } else if (type == DType::float64) {
        const double value = uniform(random) * (1 + 1e-9 * double(random() % 1000));
        std::memcpy(&bytes[at], &value, 8);
      } else if (type == DType::float16) {  // any number of size below 2, subnormals too
        const uint16_t bits = uint16_t(random() % 0x4000) | uint16_t(random() % 2 << 15);
        std::memcpy(&bytes[at], &bits, 2);
      } else {  // bfloat16 keeps the upper half
        const float value = uniform(random);
        std::memcpy(&bytes[at], reinterpret_cast<const char*>(&value) + 4 - size_of(type),
                    size_of(type));
      }
    }
  }
};

Real activate(Activation activation, Real x) {
  switch (activation) {
    case Activation::none: return x;
    case Activation::relu: return std::max<Real>(x, 0);
    case Activation::gelu_erf: return x / 2 * std::erfc(-x * std::sqrt(Real(0.5)));
    case Activation::gelu_tanh:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / Real(M_PI)) * (x + Real(0.044715) * x * x * x)));
    case Activation::silu: return x / (1 + std::exp(-x));
    case Activation::sigmoid: return 1 / (1 + std::exp(-x));
    case Activation::tanh: return std::tanh(x);
    case Activation::clip: return std::min<Real>(std::max<Real>(x, -0.5), 0.25);
  }
  return x;
}

// The operands of a problem and where things lie in them.
struct Setup {
  const Problem& problem;
  int64_t count;  // matrices in the batch
  cpu::GemmCall call;
  Tensor a, b, c, bias;
  std::vector<float> residual;
  std::vector<char> packed;
  std::vector<const void*> table;
  std::vector<float> seen;           // what the hook was given, [count * m, n]
  std::vector<std::atomic<int>> visits;

  explicit Setup(const Problem& p)
      : problem(p), count(p.batch[0] * p.batch[1] * p.batch[2]), call(strides(p)),
        a(p.a_type, a_elements()), b(p.b_type, b_elements()), c(p.c_type, c_elements()),
        bias(size_of(p.c_type) == 2 ? DType::float32 : p.c_type, p.n),
        residual(size_t(c_elements())), visits(size_t(p.hook ? count * p.m * p.n : 0)) {
    std::mt19937_64 random(uint64_t(p.m * 1000 + p.n * 100 + p.k));
    for (Tensor* t : {&a, &b, &c, &bias}) t->fill(random);
    for (float& value : residual) value = float(int64_t(random() % 2001) - 1000) / 1000;
    point();
  }

  static cpu::GemmCall strides(const Problem& p) {
    cpu::GemmCall call;
    params::Gemm& s = call.shape;
    s = {.m = p.m, .n = p.n, .k = p.k, .trans_a = p.trans_a, .trans_b = p.trans_b,
         .alpha = p.alpha};
    const int64_t apart = p.heads ? p.batch[2] : 1;
    s.lda = (p.trans_a ? p.m : p.k) * apart + p.pad;
    s.ldb = (p.trans_b ? p.k : p.n) + p.pad;
    s.ldc = p.n * apart + p.pad;
    const int64_t a_matrix = s.lda * (p.trans_a ? p.k : p.m), c_matrix = s.ldc * p.m;
    const int64_t b_matrix = s.ldb * (p.trans_b ? p.n : p.k);
    const int64_t inner = p.heads ? 1 : p.batch[2];
    const long long steps[3] = {p.batch[1] * inner, inner, 1};
    for (int d = 0; d < 3; ++d) {
      const bool head = p.heads && d == 2;
      s.batch[d] = p.batch[d];
      s.a_batch[d] = p.taps ? (d == 2 ? p.k / p.taps : 0) : head ? p.k : a_matrix * steps[d];
      s.c_batch[d] = head ? p.n : c_matrix * steps[d];
      const long long index[3] = {p.batch[1] * p.batch[2], p.batch[2], 1};
      s.b_batch[d] = p.shared_b ? 0 : b_matrix * index[d];
    }
    return call;
  }

  int64_t matrices(bool with_heads) const {
    return with_heads ? problem.batch[0] * problem.batch[1] : count;
  }
  int64_t a_elements() const {
    if (problem.taps) return (problem.m + 1) * problem.k * count + 1;
    return matrices(problem.heads) * call.shape.lda * (problem.trans_a ? problem.k : problem.m);
  }
  int64_t b_elements() const { return b_matrix() * (problem.shared_b ? 1 : count); }
  int64_t b_matrix() const { return call.shape.ldb * (problem.trans_b ? problem.n : problem.k); }
  int64_t c_elements() const { return matrices(problem.heads) * call.shape.ldc * problem.m; }

  // Fills in pointers, the packed B and the table of taps.
  void point() {
    call.a_type = problem.a_type;
    call.b_type = problem.b_type;
    call.c_type = problem.c_type;
    call.threads = problem.threads;
    call.store = problem.store;
    call.taps = problem.taps;
    call.a = a.bytes.data();
    call.b = b.bytes.data();
    call.c = c.bytes.data();
    call.epilogue.bias = bias.bytes.data();
    call.epilogue.activation = problem.activation;
    call.epilogue.low = -0.5f;
    call.epilogue.high = 0.25f;
    call.epilogue.add_residual = problem.residual;
    call.epilogue.residual_first = problem.residual_first;
    call.epilogue.residual = residual.data();
    call.epilogue.residual_ld = call.shape.ldc;
    std::copy(call.shape.c_batch, call.shape.c_batch + 3, call.epilogue.residual_batch);
    if (problem.packed) pack();
    if (problem.taps) {
      const int64_t run = problem.k / problem.taps * count;
      for (int64_t i = 0; i < problem.m * problem.taps; ++i) {
        const int64_t where = i * 7 % (problem.m * problem.taps);  // any order, shared runs
        table.push_back(a.bytes.data() + where / 2 * run * int64_t(size_of(problem.a_type)));
      }
      call.a = table.data();
    }
    if (problem.hook) {
      seen.resize(size_t(count * problem.m * problem.n));
      call.epilogue.tile = &Setup::hook;
      call.epilogue.context = this;
    }
  }

  void pack() {
    const int64_t elements = cpu::gemm_packed_count(problem.b_type, problem.k, problem.n);
    const int64_t size = int64_t(size_of(cpu::gemm_packed_type(problem.b_type)));
    const int64_t copies = problem.shared_b ? 1 : count;
    packed.resize(size_t(elements * size * copies + 1));
    for (int64_t i = 0; i < copies; ++i) {
      const char* from = b.bytes.data() + i * b_matrix() * int64_t(size_of(problem.b_type));
      cpu::gemm_pack_b(problem.b_type, from, call.shape.ldb, problem.trans_b, problem.k, problem.n,
                       packed.data() + i * elements * size, problem.threads);
    }
    for (long long& step : call.shape.b_batch) {
      if (step) step = step / b_matrix() * elements;
    }
    call.b_packed = true;
    call.b = packed.data();
  }

  static void hook(void* context, float* c, int64_t row, int64_t col, int64_t rows, int64_t cols,
                   int64_t ldc) {
    Setup& self = *static_cast<Setup*>(context);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < cols; ++j) {
        const size_t at = size_t((row + i) * self.problem.n + col + j);
        self.seen[at] = c[i * ldc + j];
        self.visits[at]++;
        c[i * ldc + j] *= 2;
      }
    }
  }

  void run() {
    std::vector<char> memory(cpu::gemm_workspace(call) + 128, char(0x7f));
    char* start = memory.data() + 64 - uintptr_t(memory.data()) % 64;
    call.workspace = start;
    cpu::gemm(call);
    const size_t used = cpu::gemm_workspace(call);
    check(std::all_of(start + used, memory.data() + memory.size(),
                      [](char byte) { return byte == 0x7f; }), "wrote past its workspace");
  }

  int64_t c_at(const int64_t (&item)[3], int64_t i, int64_t j) const {
    const long long* step = call.shape.c_batch;
    return step[0] * item[0] + step[1] * item[1] + step[2] * item[2] + i * call.shape.ldc + j;
  }

  int64_t a_at(const int64_t (&item)[3], int64_t i, int64_t k) const {
    const long long* step = call.shape.a_batch;
    const int64_t base = step[0] * item[0] + step[1] * item[1] + step[2] * item[2];
    if (problem.taps) {
      const int64_t run = problem.k / problem.taps;
      const char* tap = static_cast<const char*>(table[size_t(i * problem.taps + k / run)]);
      return base + (tap - a.bytes.data()) / int64_t(size_of(problem.a_type)) + k % run;
    }
    return base + (problem.trans_a ? k * call.shape.lda + i : i * call.shape.lda + k);
  }

  int64_t b_at(int64_t index, int64_t k, int64_t j) const {
    const int64_t base = problem.shared_b ? 0 : index * b_matrix();
    return base + (problem.trans_b ? j * call.shape.ldb + k : k * call.shape.ldb + j);
  }

  // f(index, item, i, j) for each element of C.
  template <class F>
  void each(F f) const {
    int64_t index = 0;
    int64_t item[3];
    for (item[0] = 0; item[0] < problem.batch[0]; ++item[0]) {
      for (item[1] = 0; item[1] < problem.batch[1]; ++item[1]) {
        for (item[2] = 0; item[2] < problem.batch[2]; ++item[2], ++index) {
          for (int64_t i = 0; i < problem.m; ++i) {
            for (int64_t j = 0; j < problem.n; ++j) f(index, item, i, j);
          }
        }
      }
    }
  }

  [[noreturn]] void report(int64_t index, int64_t i, int64_t j, Real got, Real expected) const {
    std::ostringstream text;
    text << "m " << problem.m << " n " << problem.n << " k " << problem.k << " packed "
         << problem.packed << " trans " << problem.trans_a << problem.trans_b << " threads "
         << problem.threads << " types " << int(problem.a_type) << ' ' << int(problem.b_type)
         << ' ' << int(problem.c_type) << " activation " << int(problem.activation) << " isa "
         << int(cpu_isa()) << " at " << index << ": " << i << ", " << j << ": got " << got
         << ", expected " << expected;
    fail(text.str(), Where::current());
  }
};

void compare_integers(const Setup& setup) {
  const Problem& p = setup.problem;
  setup.each([&](int64_t index, const int64_t (&item)[3], int64_t i, int64_t j) {
    uint64_t sum = setup.bias.integer(j);
    for (int64_t k = 0; k < p.k; ++k) {
      sum += setup.a.integer(setup.a_at(item, i, k)) * setup.b.integer(setup.b_at(index, k, j));
    }
    if (size_of(p.c_type) == 4) sum = uint32_t(sum);
    const uint64_t got = setup.c.integer(setup.c_at(item, i, j));
    if (got != sum) setup.report(index, i, j, double(got), double(sum));
  });
}

// Half the distance between numbers at 1: the relative error of one rounding.
Real unit(DType type) {
  switch (type) {
    case DType::float64: return std::ldexp(Real(1), -53);
    case DType::float16: return std::ldexp(Real(1), -11);
    case DType::bfloat16: return std::ldexp(Real(1), -8);
    default: return std::ldexp(Real(1), -24);
  }
}

void compare_reals(const Setup& setup) {
  const Problem& p = setup.problem;
  const Real sum_unit = unit(p.c_type == DType::float64 ? DType::float64 : DType::float32);
  setup.each([&](int64_t index, const int64_t (&item)[3], int64_t i, int64_t j) {
    Real value = setup.bias.real(j), size = std::fabs(value);
    for (int64_t k = 0; k < p.k; ++k) {
      const Real product = Real(p.alpha) * setup.a.real(setup.a_at(item, i, k)) *
                           setup.b.real(setup.b_at(index, k, j));
      value += product;
      size += std::fabs(product);
    }
    const Real other = p.residual ? setup.residual[size_t(setup.c_at(item, i, j))] : 0;
    value = p.residual_first ? activate(p.activation, value + other)
                             : activate(p.activation, value) + other;
    // Each of k additions rounds; activations add up to 8 units in the last place, and their
    // slope is below 1.2.
    Real bound = (Real(p.k + 8) * (size + std::fabs(other)) * 2 + 16 * std::fabs(value)) * sum_unit;
    const Real subnormal = std::ldexp(Real(1), -25);
    if (size_of(p.c_type) == 2) bound += std::fabs(value) * unit(p.c_type) + subnormal;
    if (p.hook) {
      const size_t at = size_t((index * p.m + i) * p.n + j);
      check_equal(setup.visits[at].load(), 1);
      const Real seen = setup.seen[at];
      if (!(std::fabs(seen - value) <= bound)) setup.report(index, i, j, seen, value);
      value *= 2;
      bound *= 2;
    }
    if (!p.store) return;
    const Real got = setup.c.real(setup.c_at(item, i, j));
    if (!(std::fabs(got - value) <= bound)) setup.report(index, i, j, got, value);
  });
}

}  // namespace

std::vector<Isa> supported_levels() {
  std::vector<Isa> levels;
  for (Isa isa : {Isa::portable, Isa::avx2, Isa::avx512}) {
    if (isa <= cpu_info().isa) levels.push_back(isa);
  }
  return levels;
}

std::vector<double> run_problem(const Problem& problem) {
  Setup setup(problem);
  setup.run();
  std::vector<double> values;
  setup.each([&](int64_t, const int64_t (&item)[3], int64_t i, int64_t j) {
    values.push_back(double(setup.c.real(setup.c_at(item, i, j))));
  });
  return values;
}

void run_and_compare(const Problem& problem) {
  Setup setup(problem);
  const Tensor before = setup.c;
  setup.run();
  // What lies between the rows of C must stay.
  for (int64_t i = 0; i < problem.pad * (problem.m > 0 ? problem.m - 1 : 0); ++i) {
    const int64_t at = i / problem.pad * setup.call.shape.ldc + problem.n + i % problem.pad;
    const size_t bytes = size_of(problem.c_type), first = size_t(at) * bytes;
    check(!std::memcmp(&setup.c.bytes[first], &before.bytes[first], bytes), "wrote between rows");
  }
  if (is_integer(problem.c_type)) compare_integers(setup);
  else compare_reals(setup);
}

}  // namespace rlx::test
