// Vectors of `bytes` bytes for the inner kernels of matrix products.
//
// GCC vector extensions: the including file's instruction set decides the code. Everything built
// on them is static, so that each of those files keeps its own copy.
#pragma once

#include <cstdint>

#include "core/transpose.h"
#include "cpu/kernels/gemm_kernels.h"

namespace rlx::cpu::tile {

template <class T, int bytes>
struct VectorOf {
  typedef T type __attribute__((vector_size(bytes)));
  typedef T unaligned __attribute__((vector_size(bytes), aligned(alignof(T)), may_alias));
};

template <class T, int bytes>
using Vec = typename VectorOf<T, bytes>::type;

template <class T, int bytes>
[[gnu::always_inline]] static inline Vec<T, bytes> load(const T* from) {
  return *reinterpret_cast<const typename VectorOf<T, bytes>::unaligned*>(from);
}

template <class T, int bytes>
[[gnu::always_inline]] static inline void store(T* to, Vec<T, bytes> value) {
  *reinterpret_cast<typename VectorOf<T, bytes>::unaligned*>(to) = value;
}

using rlx::transpose;

}  // namespace rlx::cpu::tile
