// Matrix products of any type and strides by plain loops.
#include "cpu/kernels/matmul_plain.h"

#include <complex>

#include "cpu/kernels/storage.h"
#include "cpu/kernels/zero_point.h"
#include "cpu/team.h"

namespace rlx::cpu {
namespace {

// Where each operand's matrix number `index` of the batch begins.
struct Origin {
  int64_t a = 0, b = 0, c = 0;
  Origin(const PlainMatMul& call, int64_t index) {
    for (size_t axis = call.batch.size(); axis-- > 0; index /= call.batch[axis]) {
      const int64_t i = index % call.batch[axis];
      a += i * call.a.batch[axis];
      b += i * call.b.batch[axis];
      c += i * call.c.batch[axis];
    }
  }
};

template <class A, class B, class Sum, class C>
void run(const PlainMatMul& p, const A* a, const B* b, const void* a_zero, const void* b_zero, C* c,
         int threads) {
  const int64_t work = p.n * p.k, grain = 1 + 16384 / (work + 1);
  parallel_for(threads, element_count(p.batch) * p.m, grain, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const Origin origin(p, item / p.m);
      const int64_t i = item % p.m;
      const Sum az = Sum(zero_point(p.a_zero_type, a_zero, p.a_zero_per_row ? i : 0));
      for (int64_t j = 0; j < p.n; ++j) {
        const Sum bz = Sum(zero_point(p.b_zero_type, b_zero, p.b_zero_per_col ? j : 0));
        const A* left = a + origin.a + i * p.a.row;
        const B* right = b + origin.b + j * p.b.col;
        Sum sum{};
        for (int64_t k = 0; k < p.k; ++k, left += p.a.col, right += p.b.row) {
          sum += (Sum(*left) - az) * (Sum(*right) - bz);
        }
        if constexpr (!std::is_integral_v<Sum>) sum = sum * Sum(p.alpha);
        c[origin.c + i * p.c.row + j * p.c.col] = C(sum);
      }
    }
  });
}

// Calls f(Storage<A>, Storage<B>, Storage<Sum>, Storage<C>) for types that there is code for.
template <class F>
bool with_types(DType a, DType b, DType c, F&& f) {
  const auto same = [&]<class T>(Storage<T> tag, auto sum) {
    return a == b && a == c && (f(tag, tag, sum, tag), true);
  };
  const auto half = [&]<class T>(Storage<T> tag) {
    if (same(tag, Storage<float>{})) return true;
    return a == b && c == DType::float32 && (f(tag, tag, Storage<float>{}, Storage<float>{}), true);
  };
  const auto with_half = [](DType type, auto&& g) {
    if (type == DType::float16) return g(Storage<Float16>{}), true;
    return type == DType::bfloat16 && (g(Storage<Bfloat16>{}), true);
  };
  constexpr Storage<float> wide{};
  const auto by_half = [&](auto tag) { f(wide, tag, wide, wide); };
  const auto of_half = [&](auto tag) { f(tag, wide, wide, wide); };
  const auto bytes = [&](auto tag) {
    using Sum = Storage<uint32_t>;
    if (c != DType::int32) return false;
    if (b == DType::int8) return f(tag, Storage<int8_t>{}, Sum{}, Storage<int32_t>{}), true;
    if (b == DType::uint8) return f(tag, Storage<uint8_t>{}, Sum{}, Storage<int32_t>{}), true;
    return false;
  };
  if (c == DType::float32 && a == c && with_half(b, by_half)) return true;
  if (c == DType::float32 && b == c && with_half(a, of_half)) return true;
  switch (a) {
    case DType::float32: return same(Storage<float>{}, Storage<float>{});
    case DType::float64: return same(Storage<double>{}, Storage<double>{});
    case DType::float16: return half(Storage<Float16>{});
    case DType::bfloat16: return half(Storage<Bfloat16>{});
    case DType::complex64:
      return same(Storage<std::complex<float>>{}, Storage<std::complex<float>>{});
    case DType::complex128:
      return same(Storage<std::complex<double>>{}, Storage<std::complex<double>>{});
    case DType::int8:
      return bytes(Storage<int8_t>{}) || same(Storage<int8_t>{}, Storage<uint32_t>{});
    case DType::uint8:
      return bytes(Storage<uint8_t>{}) || same(Storage<uint8_t>{}, Storage<uint32_t>{});
    case DType::int16: return same(Storage<int16_t>{}, Storage<uint32_t>{});
    case DType::uint16: return same(Storage<uint16_t>{}, Storage<uint32_t>{});
    case DType::int32: return same(Storage<int32_t>{}, Storage<uint32_t>{});
    case DType::uint32: return same(Storage<uint32_t>{}, Storage<uint32_t>{});
    case DType::int64: return same(Storage<int64_t>{}, Storage<uint64_t>{});
    case DType::uint64: return same(Storage<uint64_t>{}, Storage<uint64_t>{});
    default: return false;
  }
}

}  // namespace

bool plain_matmul_takes(DType a, DType b, DType c) {
  return with_types(a, b, c, [](auto, auto, auto, auto) {});
}

void plain_matmul(const PlainMatMul& call, const void* a, const void* b, const void* a_zero,
                  const void* b_zero, void* c, int threads) {
  const auto typed = [&]<class A, class B, class Sum, class C>(Storage<A>, Storage<B>,
                                                               Storage<Sum>, Storage<C>) {
    run<A, B, Sum, C>(call, static_cast<const A*>(a), static_cast<const B*>(b), a_zero, b_zero,
                      static_cast<C*>(c), threads);
  };
  with_types(call.a_type, call.b_type, call.c_type, typed);
}

}  // namespace rlx::cpu
