// Scalar types and traits of device code; compiles in C++ and in NVRTC, without system headers.
#pragma once

#if defined(__CUDACC_RTC__)
#define RLX_FN static __device__ __forceinline__
#else
// Internal linkage: every file of an instruction set keeps code of its own.
#define RLX_FN [[maybe_unused, gnu::always_inline]] static inline
#endif

namespace rlx::scalar {

template <class T> struct Complex {
  T re, im;
};

RLX_FN unsigned bits_of(float x) { return __builtin_bit_cast(unsigned, x); }
RLX_FN float from_bits(unsigned x) { return __builtin_bit_cast(float, x); }

enum class Kind { boolean, integer, real, complex };

// Traits of a compute type: its kind, the unsigned and the signed integer of its width.
template <class T> struct Traits;
template <class S, class U> struct IntegerTraits {
  static constexpr Kind kind = Kind::integer;
  using Signed = S;
  using Unsigned = U;
};
template <> struct Traits<bool> { static constexpr Kind kind = Kind::boolean; };
template <> struct Traits<float> { static constexpr Kind kind = Kind::real; };
template <> struct Traits<double> { static constexpr Kind kind = Kind::real; };
template <class T> struct Traits<Complex<T>> { static constexpr Kind kind = Kind::complex; };
template <> struct Traits<signed char> : IntegerTraits<signed char, unsigned char> {};
template <> struct Traits<unsigned char> : IntegerTraits<signed char, unsigned char> {};
template <> struct Traits<short> : IntegerTraits<short, unsigned short> {};
template <> struct Traits<unsigned short> : IntegerTraits<short, unsigned short> {};
template <> struct Traits<int> : IntegerTraits<int, unsigned> {};
template <> struct Traits<unsigned> : IntegerTraits<int, unsigned> {};
template <> struct Traits<long> : IntegerTraits<long, unsigned long> {};
template <> struct Traits<unsigned long> : IntegerTraits<long, unsigned long> {};
template <> struct Traits<long long> : IntegerTraits<long long, unsigned long long> {};
template <> struct Traits<unsigned long long> : IntegerTraits<long long, unsigned long long> {};

template <class T> concept Boolean = Traits<T>::kind == Kind::boolean;
template <class T> concept Integer = Traits<T>::kind == Kind::integer;
template <class T> concept Real = Traits<T>::kind == Kind::real;
template <class T> concept ComplexNumber = Traits<T>::kind == Kind::complex;
template <class T> concept Ordered = Integer<T> || Real<T>;
template <class T> concept Numeric = Ordered<T> || ComplexNumber<T>;

template <Integer T> using Unsigned = typename Traits<T>::Unsigned;
template <Integer T> using Signed = typename Traits<T>::Signed;
// Arithmetic in it wraps and is not promoted to int, which would overflow.
template <Integer T> using Wide = decltype(Unsigned<T>(0) + 0u);
template <Integer T> inline constexpr bool is_signed = T(-1) < T(0);
template <Integer T> inline constexpr int width = 8 * int(sizeof(T));

}  // namespace rlx::scalar
