// Compute types of Regions as C++ types, and how loops read and write them in memory.
// Included by files of every instruction set: all of it is local to each.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/cpuid.h"
#include "core/dtype.h"
#include "kernels/include/types.h"

namespace rlx::cpu {
namespace {

#if defined(__AVX512F__)
constexpr Isa this_isa = Isa::avx512;
constexpr int vector_bytes = 64;
#elif defined(__AVX2__)
constexpr Isa this_isa = Isa::avx2;
constexpr int vector_bytes = 32;
#else
constexpr Isa this_isa = Isa::portable;
constexpr int vector_bytes = 16;
#endif

// A bool is stored as a byte and read as "not zero", whatever a caller put there.
template <class T> using Memory = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;

template <class T> struct Tag {
  using type = T;
};

// f(Tag<T>{}) for the compute type, or `otherwise` if it is not of the group.
template <class F, class R>
[[maybe_unused]] R with_real(DType type, R otherwise, F&& f) {
  switch (type) {
    case DType::float32: return f(Tag<float>{});
    case DType::float64: return f(Tag<double>{});
    case DType::complex64: return f(Tag<scalar::Complex<float>>{});
    case DType::complex128: return f(Tag<scalar::Complex<double>>{});
    default: return otherwise;
  }
}

template <class F, class R>
[[maybe_unused]] R with_integer(DType type, R otherwise, F&& f) {
  switch (type) {
    case DType::boolean: return f(Tag<bool>{});
    case DType::int8: return f(Tag<int8_t>{});
    case DType::uint8: return f(Tag<uint8_t>{});
    case DType::int16: return f(Tag<int16_t>{});
    case DType::uint16: return f(Tag<uint16_t>{});
    case DType::int32: return f(Tag<int32_t>{});
    case DType::uint32: return f(Tag<uint32_t>{});
    case DType::int64: return f(Tag<int64_t>{});
    case DType::uint64: return f(Tag<uint64_t>{});
    default: return otherwise;
  }
}

}  // namespace
}  // namespace rlx::cpu
