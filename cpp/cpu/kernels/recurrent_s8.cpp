// Rounds rows to uint8 by their range and multiplies them with packed 8-bit weights.
#include "cpu/kernels/recurrent_s8.h"

#include <algorithm>

#include "cpu/kernels/gemm_s8.h"
#include "cpu/team.h"

namespace rlx::cpu {
namespace {

constexpr int64_t rounded_at_once = 16384;  // values that are worth a thread

struct Levels {
  float scale = 1;
  float zero = 0;  // a whole number of 0 to 255
};

// To the nearest whole number, ties to even: beyond 2^23 floats have no fraction. Values are small.
float whole(float x) {
  constexpr float big = 12582912.0f;
  return (x + big) - big;
}

// A comparison that fails, as it does with a NaN, gives 0.
float cut(float x) { return x > 0.0f ? (x < 255.0f ? x : 255.0f) : 0.0f; }

Levels levels_of(const RoundedProduct& p) {
  float low = 0, high = 0;
  for (int64_t i = 0; i < p.m; ++i) {
    if (p.used && !p.used[i]) continue;
    const float* row = p.x + i * p.k;
    for (int64_t j = 0; j < p.k; ++j) {
      low = row[j] < low ? row[j] : low;
      high = row[j] > high ? row[j] : high;
    }
  }
  Levels levels;
  const float scale = (high - low) / 255.0f;
  if (scale > 0.0f) levels.scale = scale;
  levels.zero = whole(cut(-low / levels.scale));
  return levels;
}

void round_rows(const RoundedProduct& p, const Levels& levels, uint8_t* to) {
  parallel_for(p.threads, p.m * p.k, rounded_at_once, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      // What lies outside of [0, 255] is cut: the first cut keeps whole() within its range.
      const float level = p.x[i] / levels.scale;
      const float near = level > -512.0f ? (level < 512.0f ? level : 512.0f) : -512.0f;
      to[i] = uint8_t(int32_t(cut(whole(near) + levels.zero)));
    }
  });
}

struct Scaling {
  const RoundedProduct* product;
  float scale;
};

void scale_tile(void* context, int32_t* c, int64_t row, int64_t col, int64_t rows, int64_t cols,
                int64_t ldc) {
  const Scaling& scaling = *static_cast<const Scaling*>(context);
  const RoundedProduct& p = *scaling.product;
  const float* bias = p.bias ? p.bias + col : nullptr;
  for (int64_t i = 0; i < rows; ++i, c += ldc) {
    float* y = p.y + (row + i) * p.n + col;
    if (p.scales.scale_each) {
      const float* each = p.scales.scale + col;
      for (int64_t j = 0; j < cols; ++j) y[j] = float(c[j]) * (scaling.scale * each[j]);
    } else {
      const float all = scaling.scale * *p.scales.scale;
      for (int64_t j = 0; j < cols; ++j) y[j] = float(c[j]) * all;
    }
    for (int64_t j = 0; bias && j < cols; ++j) y[j] += bias[j];
  }
}

GemmS8Call call_of(const RoundedProduct& p) {
  GemmS8Call call;
  call.shape.m = p.m;
  call.shape.n = p.n;
  call.shape.k = p.k;
  call.shape.lda = p.k;
  call.b_signed = p.weights_signed;
  call.b_packed = true;
  call.b_zero = p.scales.zero;
  call.b_zero_step = p.scales.zero_each;
  call.tile = scale_tile;
  call.store = false;
  call.threads = p.threads;
  return call;
}

size_t rounded_bytes(const RoundedProduct& p) { return size_t(p.m * p.k + 63) / 64 * 64; }

}  // namespace

size_t rounded_product_workspace(const RoundedProduct& product) {
  return rounded_bytes(product) + gemm_s8_workspace(call_of(product));
}

void rounded_product(const RoundedProduct& product) {
  const Levels levels = levels_of(product);
  const uint8_t zero = uint8_t(int32_t(levels.zero));
  auto* rounded = static_cast<uint8_t*>(product.workspace);
  round_rows(product, levels, rounded);
  Scaling scaling{&product, levels.scale};
  GemmS8Call call = call_of(product);
  call.a = rounded;
  call.a_zero = &zero;
  call.b = product.weights;
  call.context = &scaling;
  call.workspace = rounded + rounded_bytes(product);
  gemm_s8(call);
}

}  // namespace rlx::cpu
