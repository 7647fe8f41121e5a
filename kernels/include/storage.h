// Element types of memory and what arithmetic runs in: loads widen, stores round.
#pragma once

#include "kernels/include/small_floats.h"

namespace rlx::scalar {

// A 16-bit float as it lies in memory.
template <class F> struct Stored {
  unsigned short code;
};
using StoredFloat16 = Stored<Float16>;
using StoredBFloat16 = Stored<BFloat16>;

// What the values of a memory type are computed in.
template <class T> struct ComputeOf { using type = T; };
template <class F> struct ComputeOf<Stored<F>> { using type = float; };
template <class T> using Compute = typename ComputeOf<T>::type;

template <class T> RLX_FN T widen(T x) { return x; }
template <class F> RLX_FN float widen(Stored<F> x) { return decode<F>(x.code); }

template <class T> struct Narrow {
  RLX_FN T from(T x) { return x; }
};
template <class F> struct Narrow<Stored<F>> {
  RLX_FN Stored<F> from(float x) { return {(unsigned short)encode<F, false>(x)}; }
};
template <class T> RLX_FN T narrow(Compute<T> x) { return Narrow<T>::from(x); }

// ONNX numbers of the element types that kernels tell apart while running.
enum class Element : int { float32 = 1, float16 = 10, float64 = 11, bfloat16 = 16 };

// Element i of an array of any float type, for small operands as grids and boxes.
template <class W> RLX_FN W load_real(const void* data, int dtype, long long i) {
  switch (Element(dtype)) {
    case Element::float64: return W(static_cast<const double*>(data)[i]);
    case Element::float16: return W(widen(static_cast<const StoredFloat16*>(data)[i]));
    case Element::bfloat16: return W(widen(static_cast<const StoredBFloat16*>(data)[i]));
    default: return W(static_cast<const float*>(data)[i]);
  }
}

}  // namespace rlx::scalar
