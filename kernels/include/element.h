// Elements in memory and the types that arithmetic on them runs in; conversions between those.
#pragma once

#include "kernels/include/convert.h"
#include "kernels/include/platform.h"
#include "kernels/include/small_floats.h"

namespace rlx {

template <class Format> struct Small16 {
  unsigned short bits;
};
template <class Format> struct Small8 {
  unsigned char bits;
};
using F16 = Small16<scalar::Float16>;
using BF16 = Small16<scalar::BFloat16>;
using F8E4M3FN = Small8<scalar::Float8E4M3FN>;
using F8E4M3FNUZ = Small8<scalar::Float8E4M3FNUZ>;
using F8E5M2 = Small8<scalar::Float8E5M2>;
using F8E5M2FNUZ = Small8<scalar::Float8E5M2FNUZ>;
using F4E2M1 = Small8<scalar::Float4E2M1>;
struct F8E8M0 {
  unsigned char bits;
};
struct Bool {
  unsigned char bits;
};
// An integer of less than a byte in a byte.
template <class T, int width> struct Narrow {
  T bits;
};
using I4 = Narrow<signed char, 4>;
using U4 = Narrow<unsigned char, 4>;
using I2 = Narrow<signed char, 2>;
using U2 = Narrow<unsigned char, 2>;
using C64 = scalar::Complex<float>;
using C128 = scalar::Complex<double>;

using scalar::Round;

RLX_FN float decode_half(unsigned short bits) {
#if defined(__CUDACC_RTC__)
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
#else
  return scalar::decode<scalar::Float16>(bits);
#endif
}

RLX_FN unsigned short encode_half(float x) {
#if defined(__CUDACC_RTC__)
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
#else
  return (unsigned short)(scalar::encode<scalar::Float16, false>(x));
#endif
}

RLX_FN unsigned short encode_bfloat(float x) {
#if defined(__CUDACC_RTC__) && __CUDA_ARCH__ >= 800
  unsigned short bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
#else
  return (unsigned short)(scalar::encode<scalar::BFloat16, false>(x));
#endif
}

// Load and store of one storage type. saturate only matters to 8-bit and 4-bit floats (Cast's
// text names no other), round to float8e8m0.
template <class S> struct Element {
  using Compute = S;
  RLX_METHOD S load(S x) { return x; }
  template <bool saturate = false, Round round = Round::down> RLX_METHOD S store(S x) { return x; }
};
template <> struct Element<F16> {
  using Compute = float;
  RLX_METHOD float load(F16 x) { return decode_half(x.bits); }
  template <bool saturate = false, Round round = Round::down> RLX_METHOD F16 store(float x) {
    return {encode_half(x)};
  }
};
template <> struct Element<BF16> {
  using Compute = float;
  RLX_METHOD float load(BF16 x) { return scalar::from_bits(unsigned(x.bits) << 16); }
  template <bool saturate = false, Round round = Round::down> RLX_METHOD BF16 store(float x) {
    return {encode_bfloat(x)};
  }
};
template <class Format> struct Element<Small8<Format>> {
  using Compute = float;
  RLX_METHOD float load(Small8<Format> x) {
    return scalar::decode<Format>(x.bits & (2 * Format::sign_code - 1));
  }
  template <bool saturate = false, Round round = Round::down>
  RLX_METHOD Small8<Format> store(float x) {
    return {(unsigned char)(scalar::encode<Format, saturate>(x))};
  }
};
template <> struct Element<F8E8M0> {
  using Compute = float;
  RLX_METHOD float load(F8E8M0 x) { return scalar::decode_e8m0(x.bits); }
  template <bool saturate = false, Round round = Round::down> RLX_METHOD F8E8M0 store(float x) {
    return {(unsigned char)(scalar::encode_e8m0<saturate>(x, round))};
  }
};
template <> struct Element<Bool> {
  using Compute = bool;
  RLX_METHOD bool load(Bool x) { return x.bits != 0; }
  template <bool saturate = false, Round round = Round::down> RLX_METHOD Bool store(bool x) {
    return {(unsigned char)(x)};
  }
};
template <class T, int width> struct Element<Narrow<T, width>> {
  using Compute = T;
  RLX_METHOD T load(Narrow<T, width> x) { return narrow(x.bits); }
  template <bool saturate = false, Round round = Round::down>
  RLX_METHOD Narrow<T, width> store(T x) {
    return {narrow(x)};
  }
  RLX_METHOD T narrow(T x) {
    return T(T(scalar::Unsigned<T>(x) << (8 - width)) >> (8 - width));
  }
};

template <class S> using ComputeOf = typename Element<S>::Compute;

// The type that sums of S are kept in: double for double, float for other reals, S's own else.
template <class S> RLX_FN ComputeOf<S> load(const S* p) { return Element<S>::load(*p); }
template <class S> RLX_FN void store(S* p, ComputeOf<S> x) { *p = Element<S>::store(x); }

// x as a value of type S that ONNX Cast gives, still in S's compute type.
template <class S, bool saturate, Round round, class From> RLX_FN ComputeOf<S> cast(From x) {
  using To = ComputeOf<S>;
  if constexpr (sizeof(S) < sizeof(To) && scalar::Traits<To>::kind == scalar::Kind::real) {
    // A small float: what lies between is rounded once.
    constexpr bool wide = sizeof(From) >= 4;
    float y;
    if constexpr (wide && scalar::Traits<From>::kind != scalar::Kind::real) y = to_odd_float(x);
    else if constexpr (sizeof(From) > 4) y = to_odd_float(x);
    else y = convert<float>(x);
    return Element<S>::load(Element<S>::template store<saturate, round>(y));
  } else {
    return convert<To>(x);
  }
}
template <class S, bool saturate, Round round, class From>
RLX_FN ComputeOf<S> cast_narrow(From x) {
  using To = ComputeOf<S>;
  constexpr scalar::Kind from = scalar::Traits<From>::kind;
  if constexpr (from == scalar::Kind::real || from == scalar::Kind::complex) {
    return Element<S>::narrow(convert<To>(convert<int>(x)));  // the low bits of the whole number
  } else {
    return Element<S>::narrow(convert<To>(x));
  }
}

}  // namespace rlx
