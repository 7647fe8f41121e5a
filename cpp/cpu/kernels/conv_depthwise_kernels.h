// What each instruction set contributes to depthwise convolution.
// Known to conv_depthwise.cpp and the conv_depthwise_<isa>.cpp files only.
#pragma once

#include "cpu/kernels/conv_depthwise.h"

namespace rlx::cpu {

// Computes output rows [begin, end) of (batch, out 0, out 1).
using DepthwiseRows = void (*)(const DepthwiseConv& conv, const void* x, const void* packed,
                               int32_t x_zero, void* y, int64_t begin, int64_t end);

struct DepthwiseTable {
  DepthwiseRows f32, f64, i8, u8;
  DepthwiseRows f16, f16_sums, bf16, bf16_sums;  // with results of x's type, and of float32
};

extern const DepthwiseTable depthwise_table_portable, depthwise_table_avx2,
    depthwise_table_avx512;

}  // namespace rlx::cpu
