// Index arithmetic that all convolution kernels share.
#include "cpu/kernels/conv.h"

#include <numeric>

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

AxisTaps axis_taps(const ConvGeometry& g, int axis) {
  AxisTaps made;
  made.source_step = int32_t(g.dilation[axis]);
  if (g.transposed) {
    const int64_t common = std::gcd(g.stride[axis], g.dilation[axis]);
    made.tap_step = int32_t(g.stride[axis] / common);
    made.source_step = int32_t(-g.dilation[axis] / common);
  }
  for (int64_t out = 0; out < g.out[axis]; ++out) {
    TapRun run;
    for (int64_t tap = 0; tap < g.kernel[axis]; ++tap) {
      const int64_t at = source(g, axis, out, tap);
      if (at < 0 || at >= g.in[axis]) continue;
      if (run.count++ == 0) run.tap = int32_t(tap), run.source = int32_t(at);
    }
    made.runs.push_back(run);
  }
  return made;
}

}  // namespace rlx::cpu
