// Depthwise convolution, channels last: each output channel reads one input channel.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "cpu/kernels/conv.h"

namespace rlx::cpu {

struct DepthwiseConv {
  ConvGeometry geometry;  // one input channel for each group; channel strides 1
  AxisTaps taps[3];
  DType x_type = DType::none;
  DType x_zero_type = DType::none;  // none: 0
  DType y_type = DType::none;
};

// Whether there are kernels: float32, float64, int8 or uint8 with int32 sums, and half types with
// results of their own type or float32.
bool depthwise_conv_takes(DType x, DType w, DType y);

// Bytes of the packed weights: [taps, out_channels] of the sums' type, zero points taken off.
size_t depthwise_packed_bytes(const ConvGeometry& geometry, DType w_type);
void depthwise_pack(const ConvGeometry& geometry, DType w_type, const void* w, DType zero_type,
                    const void* zero, bool zero_per_channel, void* packed);

void depthwise_conv(const DepthwiseConv& conv, const void* x, const void* packed,
                    const void* x_zero, void* y, int threads);

}  // namespace rlx::cpu
