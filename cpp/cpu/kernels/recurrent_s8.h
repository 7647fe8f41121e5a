// Products of float rows with 8-bit weights, the rows rounded to 256 levels of their own range.
//
// What DynamicQuantizeLinear, MatMulInteger and the scales give: y = (x * w) + bias with x in uint8
// of one scale and zero point for all rows, exact sums in int32, and one rounding to float32.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rlx::cpu {

// Scales and zero points (of the type of the weights): one, or with `each` one for every column.
struct WeightScales {
  const float* scale = nullptr;
  const void* zero = nullptr;
  bool scale_each = false, zero_each = false;
};

struct RoundedProduct {
  int64_t m = 0, n = 0, k = 0;  // x is [m, k], y [m, n]; both dense
  bool weights_signed = true;
  WeightScales scales;
  const float* x = nullptr;
  const void* weights = nullptr;  // by gemm_s8_pack_b
  const float* bias = nullptr;    // n values, or null
  float* y = nullptr;
  const bool* used = nullptr;  // rows that count for the range; null: all do
  int threads = 1;
  void* workspace = nullptr;  // rounded_product_workspace(product) bytes, 64-byte aligned
};

size_t rounded_product_workspace(const RoundedProduct& product);
void rounded_product(const RoundedProduct& product);

}  // namespace rlx::cpu
