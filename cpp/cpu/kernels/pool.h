// Pooling at known sizes, always with three spatial axes, for every type and layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/dtype.h"
#include "cpu/kernels/image.h"
#include "program/prims.h"

namespace rlx::cpu {

// The part of one window, along one axis, that lies in the input.
struct WindowSpan {
  int64_t first = 0;    // input coordinate of the first tap inside
  int64_t taps = 0;     // how many are inside, dilation apart
  int64_t divisor = 0;  // how many an average counts
};

struct WindowAxis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, pad_begin = 0, pad_end = 0;
};

// An average counts what is in the input, or in the padded input: never what ceil_mode adds.
std::vector<WindowSpan> window_spans(const WindowAxis& axis, bool count_include_pad);

// Missing spatial axes come first, as they are by default.
struct PoolShape {
  PoolKind kind{};
  DType dtype = DType::none;
  int p = 2, storage_order = 0;
  int64_t batch = 0, channels = 0;
  WindowAxis axes[3];
  std::vector<WindowSpan> spans[3];  // window_spans of each axis
  ImageStrides x, y;
};

// Whether there are kernels for the type.
bool pool_takes(PoolKind kind, DType dtype);

// Whether the vectorised kernels do it; the plain loops do everything.
bool pool_has_fast(const PoolShape& shape, bool indices);

// `indices` may be null. A window without any input gives the identity of its kind: the lowest
// value, or 0.
void pool_plain(const PoolShape& shape, const void* x, void* y, int64_t* indices, int threads);
void pool_fast(const PoolShape& shape, const void* x, void* y, int threads);

}  // namespace rlx::cpu
