// Finds loops for the instruction set in force; fills, copies and strided copies of any type.
#include "cpu/kernels/region_loops.h"

#include <cstring>
#include <string>

#include "core/error.h"

namespace rlx::cpu {
namespace {

// call.operator()<isa>() for the instruction set in force.
template <class F>
auto on_isa(F&& call) {
#if defined(__x86_64__)
  switch (cpu_isa()) {
    case Isa::avx512: return call.template operator()<Isa::avx512>();
    case Isa::avx2: return call.template operator()<Isa::avx2>();
    case Isa::portable: break;
  }
#endif
  return call.template operator()<Isa::portable>();
}

struct Sixteen {
  uint64_t low, high;
};

template <class T>
void gather(void* dst, const void* src, int64_t stride, int64_t n) {
  auto* out = static_cast<T*>(dst);
  auto* in = static_cast<const T*>(src);
  if (stride == 1) {
    std::memcpy(dst, src, size_t(n) * sizeof(T));
  } else if (stride == 0) {
    const T x = *in;
    for (int64_t i = 0; i < n; ++i) out[i] = x;
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = in[i * stride];
  }
}

template <class T, int inner>
void gather_short(T* out, const T* in, int64_t outer_stride, int64_t stride, int64_t outer) {
  for (int64_t i = 0; i < outer; ++i, in += outer_stride, out += inner) {
    for (int k = 0; k < inner; ++k) out[k] = in[k * stride];
  }
}

template <class T>
void gather_rows(void* dst, const void* src, int64_t outer_stride, int64_t stride, int64_t outer,
                 int64_t inner) {
  auto* out = static_cast<T*>(dst);
  auto* in = static_cast<const T*>(src);
  switch (inner) {  // a call for each row would cost more than the row
    case 2: return gather_short<T, 2>(out, in, outer_stride, stride, outer);
    case 3: return gather_short<T, 3>(out, in, outer_stride, stride, outer);
    case 4: return gather_short<T, 4>(out, in, outer_stride, stride, outer);
    default:
      for (int64_t i = 0; i < outer; ++i) {
        gather<T>(out + i * inner, in + i * outer_stride, stride, inner);
      }
  }
}

template <class T>
void scatter(void* dst, const void* src, int64_t stride, int64_t n) {
  auto* out = static_cast<T*>(dst);
  auto* in = static_cast<const T*>(src);
  if (stride == 1) return void(std::memcpy(dst, src, size_t(n) * sizeof(T)));
  for (int64_t i = 0; i < n; ++i) out[i * stride] = in[i];
}

template <class T>
void fill(void* dst, const void* a, const void*, const void*, int64_t n) {
  auto* out = static_cast<T*>(dst);
  const T x = *static_cast<const T*>(a);
  for (int64_t i = 0; i < n; ++i) out[i] = x;
}

template <class T>
void copy(void* dst, const void* a, const void*, const void*, int64_t n) {
  std::memmove(dst, a, size_t(n) * sizeof(T));
}

// f(T{}) for an unsigned type of `item` bytes.
template <class F>
auto with_item(size_t item, F&& f) {
  switch (item) {
    case 1: return f(uint8_t{});
    case 2: return f(uint16_t{});
    case 4: return f(uint32_t{});
    case 8: return f(uint64_t{});
    case 16: return f(Sixteen{});
  }
  throw Error(ErrorKind::internal, "no element type of " + std::to_string(item) + " bytes");
}

bool is_real(DType type) {
  return type == DType::float32 || type == DType::float64 || type == DType::complex64 ||
         type == DType::complex128;
}

}  // namespace

CastMode CastMode::of(int64_t bits) {
  const Round round = bits & 2 ? Round::down : bits & 4 ? Round::nearest : Round::up;
  return {(bits & 1) != 0, round};
}

DType compute_type(DType storage) {
  switch (storage) {
    case DType::float16: case DType::bfloat16: case DType::float8e4m3fn:
    case DType::float8e4m3fnuz: case DType::float8e5m2: case DType::float8e5m2fnuz:
    case DType::float4e2m1: case DType::float8e8m0:
      return DType::float32;
    case DType::int4: case DType::int2: return DType::int8;
    case DType::uint4: case DType::uint2: return DType::uint8;
    case DType::string: return DType::int64;
    default: return storage;
  }
}

Loop scalar_loop(ScalarOp op, DType type, unsigned scalars) {
  return on_isa([=]<Isa isa>() {
    return is_real(type) ? real_loop<isa>(op, type, scalars)
                         : integer_loop<isa>(op, type, scalars);
  });
}

Loop cast_loop(DType from, DType to, bool odd) {
  if (from == to && !(odd && to == DType::float32)) return nullptr;
  return on_isa([=]<Isa isa>() { return cast_loop_for<isa>(from, to, odd); });
}

Loop quantise_loop(DType to, unsigned scalars) {
  if (scalars != 0 && scalars != 6) return nullptr;
  return on_isa([=]<Isa isa>() { return quantise_loop_for<isa>(to, scalars != 0); });
}

Loop load_loop(DType storage) {
  return on_isa([=]<Isa isa>() { return load_loop_for<isa>(storage); });
}

Loop store_loop(DType storage, CastMode mode) {
  return on_isa([=]<Isa isa>() { return store_loop_for<isa>(storage, mode); });
}

Strided gather_loop(size_t item) {
  return with_item(item, [](auto x) -> Strided { return &gather<decltype(x)>; });
}

StridedRows gather_rows_loop(size_t item) {
  return with_item(item, [](auto x) -> StridedRows { return &gather_rows<decltype(x)>; });
}

Strided scatter_loop(size_t item) {
  return with_item(item, [](auto x) -> Strided { return &scatter<decltype(x)>; });
}

Loop fill_loop(size_t item) {
  return with_item(item, [](auto x) -> Loop { return &fill<decltype(x)>; });
}

Loop copy_loop(size_t item) {
  return with_item(item, [](auto x) -> Loop { return &copy<decltype(x)>; });
}

}  // namespace rlx::cpu
