// Index arithmetic that all convolution kernels share.
#include "cpu/kernels/conv.h"

namespace rlx::cpu {
namespace {

// A transposed convolution scatters input i to output i * stride + tap * dilation - pad; read
// from the output's side, a tap has a source where that equation has a solution.
int64_t source(const ConvGeometry& g, int axis, int64_t out, int64_t tap) {
  if (!g.transposed) return out * g.stride[axis] - g.pad[axis] + tap * g.dilation[axis];
  const int64_t offset = out + g.pad[axis] - tap * g.dilation[axis];
  return offset % g.stride[axis] == 0 ? offset / g.stride[axis] : -1;
}

}  // namespace

std::vector<int32_t> tap_sources(const ConvGeometry& g, int axis) {
  std::vector<int32_t> sources;
  sources.reserve(size_t(g.out[axis] * g.kernel[axis]));
  for (int64_t out = 0; out < g.out[axis]; ++out) {
    for (int64_t tap = 0; tap < g.kernel[axis]; ++tap) {
      const int64_t at = source(g, axis, out, tap);
      sources.push_back(at >= 0 && at < g.in[axis] ? int32_t(at) : -1);
    }
  }
  return sources;
}

}  // namespace rlx::cpu
