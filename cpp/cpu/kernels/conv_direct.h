// Convolution of any type by plain loops: slow, and simple enough to trust.
#pragma once

#include "core/dtype.h"
#include "cpu/kernels/conv.h"

namespace rlx::cpu {

struct DirectConv {
  ConvGeometry geometry;
  DType x_type = DType::none, w_type = DType::none;
  DType x_zero_type = DType::none, w_zero_type = DType::none;  // none: 0
  bool w_zero_per_channel = false;
  DType y_type = DType::none;
  AxisTaps taps[3];  // axis_taps of each
};

// Sums in float64 for float64, in float32 for the other floats, in int32 (wrapping) for integers.
// x and y have the geometry's strides; w is as ONNX has it.
void direct_conv(const DirectConv& conv, const void* x, const void* w, const void* x_zero,
                 const void* w_zero, void* y, int threads);

// Whether there is code for these types.
bool direct_conv_takes(DType x, DType w, DType y);

}  // namespace rlx::cpu
