// Makes the kernel tables: what a gemm_<isa>.cpp file includes.
#pragma once

#include "cpu/kernels/gemm_float.h"
#include "cpu/kernels/gemm_tile.h"
#include "cpu/kernels/gemv.h"

namespace rlx::cpu::tile {

template <class T, int bytes, int rows, int vectors>
constexpr GemmKernels<T> kernels() {
  return {rows, vectors * bytes / int(sizeof(T)), multiply_block<T, bytes, rows, vectors>,
          dot_block<T, bytes>, stream_block<T, bytes>, transpose<T>};
}

template <int bytes>
constexpr FloatKernels float_kernels() {
  return {epilogue<bytes>, widen<bytes>, narrow<bytes>};
}

}  // namespace rlx::cpu::tile
