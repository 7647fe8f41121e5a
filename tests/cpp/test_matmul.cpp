// Matrix products against the definition: shapes, batches, types, zero points, epilogues.
#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <random>
#include <sstream>

#include "core/half.h"
#include "tests/cpp/region_builder.h"

namespace rlx::test {
namespace {

struct Case {
  int64_t m = 1, n = 1, k = 1;
  Dims a_batch, b_batch;  // broadcast against each other, right-aligned
  bool trans_a = false, trans_b = false, constant = false;
  double alpha = 1;

  Dims batch() const {
    const Dims& more = a_batch.size() >= b_batch.size() ? a_batch : b_batch;
    const Dims& less = a_batch.size() >= b_batch.size() ? b_batch : a_batch;
    Dims made = more;
    for (size_t i = 0; i < less.size(); ++i) {
      int64_t& d = made[more.size() - less.size() + i];
      if (d == 1) d = less[i];
    }
    return made;
  }
  static Dims with(Dims batch, int64_t rows, int64_t cols) {
    batch.push_back(rows);
    batch.push_back(cols);
    return batch;
  }
  Dims a_shape() const { return trans_a ? with(a_batch, k, m) : with(a_batch, m, k); }
  Dims b_shape() const { return trans_b ? with(b_batch, n, k) : with(b_batch, k, n); }
  Dims y_shape() const { return with(batch(), m, n); }
  std::string text() const {
    std::ostringstream s;
    s << m << 'x' << n << 'x' << k << (trans_a ? " aT" : "") << (trans_b ? " bT" : "")
      << (constant ? " constant" : "") << " alpha " << alpha << " a batch";
    for (int64_t d : a_batch) s << ' ' << d;
    s << " b batch";
    for (int64_t d : b_batch) s << ' ' << d;
    return s.str();
  }
};

Case random_case(std::mt19937& random) {
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  Case c;
  const int64_t limit = pick(0, 3) == 0 ? 1 : 40;
  c.m = pick(1, limit), c.n = pick(1, 40), c.k = pick(pick(0, 8) == 0 ? 0 : 1, 40);
  c.trans_a = pick(0, 1), c.trans_b = pick(0, 1), c.constant = pick(0, 1);
  const int64_t rank = pick(0, 5);
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t d = pick(1, 3), who = pick(0, 3);
    c.a_batch.push_back(who == 0 ? 1 : d);
    c.b_batch.push_back(who == 1 ? 1 : d);
  }
  if (rank > 0 && pick(0, 2) == 0) c.b_batch.clear();
  return c;
}

template <class V>
using Wide = std::vector<V>;

// Index of the matrix of an operand with `own` batch dims that belongs to batch entry `index`.
int64_t matrix_index(int64_t index, const Dims& batch, const Dims& own) {
  int64_t found = 0, stride = 1;
  for (size_t back = 1; back <= batch.size(); ++back) {
    const int64_t d = batch[batch.size() - back], at = index % d;
    index /= d;
    if (back > own.size()) continue;
    const int64_t extent = own[own.size() - back];
    if (extent != 1) found += at * stride;
    stride *= extent;
  }
  return found;
}

template <class V>
Wide<V> reference(const Case& c, const Wide<V>& a, const Wide<V>& b, const Wide<V>& a_zero = {},
                  const Wide<V>& b_zero = {}) {
  const Dims batch = c.batch();
  const int64_t count = element_count(batch);
  Wide<V> y(size_t(count * c.m * c.n), V(0));
  const auto zero = [](const Wide<V>& z, int64_t i) {
    return z.empty() ? V(0) : z.size() == 1 ? z[0] : z[size_t(i)];
  };
  for (int64_t item = 0; item < count; ++item) {
    const int64_t ia = matrix_index(item, batch, c.a_batch) * c.m * c.k;
    const int64_t ib = matrix_index(item, batch, c.b_batch) * c.k * c.n;
    for (int64_t i = 0; i < c.m; ++i) {
      for (int64_t j = 0; j < c.n; ++j) {
        V sum = V(0);
        for (int64_t k = 0; k < c.k; ++k) {
          const V left = a[size_t(ia + (c.trans_a ? k * c.m + i : i * c.k + k))];
          const V right = b[size_t(ib + (c.trans_b ? j * c.k + k : k * c.n + j))];
          sum += (left - zero(a_zero, i)) * (right - zero(b_zero, j));
        }
        y[size_t((item * c.m + i) * c.n + j)] = sum * V(c.alpha);
      }
    }
  }
  return y;
}

template <class V>
Wide<V> integers(std::mt19937& random, const Dims& shape, int low, int high) {
  std::uniform_int_distribution<int> pick(low, high);
  Wide<V> values(size_t(element_count(shape)), V(0));
  for (V& v : values) v = V(pick(random));
  return values;
}

template <class T, class V>
Tensor as(DType dtype, const Dims& shape, const Wide<V>& values, bool constant = false) {
  std::vector<T> stored;
  for (const V& v : values) stored.push_back(T(v));
  return tensor<T>(dtype, shape, stored, constant);
}

MatMul prim_of(const Case& c) {
  MatMul prim;
  prim.trans_a = c.trans_a, prim.trans_b = c.trans_b;
  prim.alpha = c.alpha;
  return prim;
}

template <class T, class V>
void check_equal_to(const std::string& what, const Tensor& got, const Wide<V>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const V value = V(got.data<T>()[i]);
    if (value == expected[i]) continue;
    std::ostringstream text;
    text << what << ": element " << i << " is " << value << ", expected " << expected[i];
    check(false, text.str());
  }
}

// Small integers, which every type multiplies exactly.
template <class T, class V>
void check_type(DType dtype, int low, int high, unsigned seed, std::string_view force = "") {
  std::mt19937 random(seed);
  for (int i = 0; i < 60; ++i) {
    Case c = random_case(random);
    if (std::is_floating_point_v<V> && i % 3 == 0) c.alpha = 0.5;
    const auto a = integers<V>(random, c.a_shape(), low, high);
    const auto b = integers<V>(random, c.b_shape(), low, high);
    const PrimRun run = run_prim(prim_of(c), {as<T>(dtype, c.a_shape(), a),
                                              as<T>(dtype, c.b_shape(), b, c.constant), absent(),
                                              absent(), absent(), absent()},
                                 {{dtype, c.y_shape(), {}, false}}, {}, 1 + i % 2, force);
    check_equal_to<T>(c.text() + " by " + run.rung, run.outputs[0], reference(c, a, b));
  }
}

const Test types{"matmul: every type, shapes, batches", [] {
  check_type<float, double>(DType::float32, -8, 8, 1);
  check_type<float, double>(DType::float32, -8, 8, 2, "plain");
  check_type<double, double>(DType::float64, -8, 8, 3);
  check_type<Float16, double>(DType::float16, -4, 4, 4);
  check_type<Float16, double>(DType::float16, -4, 4, 4, "plain");
  check_type<Bfloat16, double>(DType::bfloat16, -1, 1, 5);
  check_type<int32_t, int64_t>(DType::int32, -9, 9, 6);
  check_type<uint32_t, int64_t>(DType::uint32, 0, 9, 7);
  check_type<int64_t, int64_t>(DType::int64, -9, 9, 8);
  check_type<uint64_t, int64_t>(DType::uint64, 0, 9, 9);
  check_type<int16_t, int64_t>(DType::int16, -9, 9, 10);
  check_type<std::complex<float>, std::complex<double>>(DType::complex64, -8, 8, 11);
  check_type<std::complex<double>, std::complex<double>>(DType::complex128, -8, 8, 12);
}};

// The widest values that there are: wrong wherever 16 bits saturate or 24 are not enough.
template <class A, class B>
void check_bytes(DType a_type, DType b_type, unsigned seed) {
  std::mt19937 random(seed);
  for (int i = 0; i < 40; ++i) {
    Case c = random_case(random);
    if (i % 4 == 0) c.k = 700 + i;
    const auto extreme = [&](auto tag, const Dims& shape) {
      using T = decltype(tag);
      const int low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
      auto values = integers<int64_t>(random, shape, low, high);
      if (i % 2 == 0) for (int64_t& v : values) v = v < (low + high) / 2 ? low : high;
      return values;
    };
    const auto a = extreme(A{}, c.a_shape());
    const auto b = extreme(B{}, c.b_shape());
    const auto az = extreme(A{}, Dims{i % 3 == 0 ? c.m : 1});
    const auto bz = extreme(B{}, Dims{i % 3 == 1 ? c.n : 1});
    const bool zeros = i % 5 != 0;
    const PrimRun run = run_prim(
        prim_of(c),
        {as<A>(a_type, c.a_shape(), a), as<B>(b_type, c.b_shape(), b, c.constant),
         zeros ? as<A>(a_type, i % 3 == 0 ? Dims{c.m} : Dims{}, az) : absent(),
         zeros ? as<B>(b_type, i % 3 == 1 ? Dims{c.n} : Dims{}, bz, c.constant) : absent(),
         absent(), absent()},
        {{DType::int32, c.y_shape(), {}, false}}, {}, 1 + i % 2);
    const auto none = std::vector<int64_t>{};
    check_equal_to<int32_t>(c.text() + " by " + run.rung, run.outputs[0],
                            reference(c, a, b, zeros ? az : none, zeros ? bz : none));
  }
}

const Test bytes{"matmul: int8 and uint8 are exact at their extremes", [] {
  check_bytes<int8_t, int8_t>(DType::int8, DType::int8, 1);
  check_bytes<uint8_t, int8_t>(DType::uint8, DType::int8, 2);
  check_bytes<int8_t, uint8_t>(DType::int8, DType::uint8, 3);
  check_bytes<uint8_t, uint8_t>(DType::uint8, DType::uint8, 4);
}};

}  // namespace
}  // namespace rlx::test
