// Cuts output rows, and finds the input rows and the padding that each cut needs.
#include "cpu/kernels/conv_parts.h"

#include <algorithm>
#include <optional>

#include "core/divide.h"

namespace rlx::cpu {
namespace {

// Below this many multiplications waking a thread costs more than it saves.
constexpr int64_t least_work = 256 * 1024;
// A part of this many takes about a millisecond: larger ones are cut further, so that a thread
// which others keep from its core holds up less.
constexpr int64_t most_work = 16 * 1024 * 1024;

// All pixels of all images as one row: a pointwise convolution does not tell them apart.
ConvGeometry one_row(ConvGeometry g) {
  const int64_t pixels = g.batch * g.in_pixels();
  for (int axis = 0; axis < 3; ++axis) g.in[axis] = g.out[axis] = 1;
  g.in[2] = g.out[2] = pixels;
  g.batch = 1;
  g.spatial = 1;
  return g;
}

void lay_out_dense(ConvGeometry& g) {
  g.x = dense_channels_last(g.in_channels, g.in);
  g.y = dense_channels_last(g.out_channels, g.out);
}

// Rows [begin, end) of the output along an axis; nothing where they read no input at all.
std::optional<ConvPart> rows(const ConvGeometry& g, int axis, int64_t begin, int64_t end) {
  const int64_t stride = g.stride[axis], pad = g.pad[axis];
  const int64_t reach = (g.kernel[axis] - 1) * g.dilation[axis] + 1;
  int64_t first, last, left;  // input rows; padding before them
  if (g.transposed) {
    first = ceil_div(std::max<int64_t>(0, begin + pad - (reach - 1)), stride);
    last = std::min(g.in[axis], (end - 1 + pad) / stride + 1);
    left = pad + begin - first * stride;
  } else {
    const int64_t wanted = begin * stride - pad;
    first = std::max<int64_t>(0, wanted);
    last = std::min(g.in[axis], (end - 1) * stride - pad + reach);
    left = first - wanted;
  }
  if (first >= last || left < 0) return std::nullopt;
  ConvPart part{g, first * g.x.space[axis], begin * g.y.space[axis]};
  part.geometry.in[axis] = last - first;
  part.geometry.out[axis] = end - begin;
  part.geometry.pad[axis] = left;
  return part;
}

}  // namespace

std::vector<ConvPart> conv_parts(const ConvGeometry& given, int threads) {
  ConvGeometry g = given.pointwise() ? one_row(given) : given;
  lay_out_dense(g);
  const std::vector<ConvPart> whole{{g, 0, 0}};
  const int64_t pixels = g.batch * (g.transposed ? g.in_pixels() : g.out_pixels());
  const int64_t work = pixels * g.taps() * g.in_per_group() * g.out_channels;
  int64_t wanted = std::min<int64_t>(threads, work / least_work);
  if (wanted <= 1) return whole;
  wanted *= std::clamp<int64_t>(work / wanted / most_work, 1, 4);
  std::vector<ConvPart> parts;
  if (g.batch >= wanted && (g.batch % wanted == 0 || g.batch >= 4 * wanted)) {
    for (int64_t k = 0; k < wanted; ++k) {
      const int64_t begin = g.batch * k / wanted, end = g.batch * (k + 1) / wanted;
      parts.push_back({g, begin * g.x.batch, begin * g.y.batch});
      parts.back().geometry.batch = end - begin;
    }
    return parts;
  }
  int axis = 0;
  while (axis < 2 && g.out[axis] == 1) ++axis;
  const int64_t pieces = std::min(ceil_div(wanted, g.batch), g.out[axis]);
  for (int64_t image = 0; image < g.batch; ++image) {
    for (int64_t k = 0; k < pieces; ++k) {
      auto part = rows(g, axis, g.out[axis] * k / pieces, g.out[axis] * (k + 1) / pieces);
      if (!part) return whole;
      part->geometry.batch = 1;
      lay_out_dense(part->geometry);
      part->x_offset += image * g.x.batch;
      part->y_offset += image * g.y.batch;
      parts.push_back(*part);
    }
  }
  return parts;
}

}  // namespace rlx::cpu
