// Convolutions by our own kernels: an implicit product, on tensor cores where they take it, or
// output by output when groups are small.
#include "cuda/select/conv_kernel.h"

#include "cuda/select/epilogue.h"

namespace rlx::cuda {
namespace {

bool present(const SelectRequest& request, size_t k) {
  return k < request.inputs.size() && request.inputs[k].dtype != DType::none;
}

std::string zero_name(const SelectRequest& request, size_t k) {
  return storage_name(present(request, k) ? request.inputs[k].dtype : DType::int8);
}

void fill_axes(const Conv& prim, const SelectRequest& request, params::Conv& p) {
  const TensorDesc &x = request.inputs[0], &w = request.inputs[1], &y = request.outputs[0];
  const size_t spatial = x.shape.size() - 2, first = prim.channels_last ? 1 : 2;
  int64_t out[3] = {1, 1, 1}, taps[3] = {1, 1, 1};
  for (size_t k = 0; k < spatial; ++k) {
    const size_t at = 3 - spatial + k;
    params::ConvAxis& axis = p.axes[at];
    axis.in = x.shape[first + k];
    axis.stride = params::Divisor(prim.strides[k]);
    axis.dilation = prim.dilations[k];
    axis.pad = request.dim(prim.pads_begin[k]);
    axis.x_stride = x.strides[first + k];
    out[at] = y.shape[first + k];
    taps[at] = w.shape[2 + k];
    if (prim.strides[k] < 1 || axis.dilation < 1) {
      throw Error(ErrorKind::model, "strides and dilations of a convolution must be positive");
    }
  }
  p.out_pixels = params::Divisor(out[0] * out[1] * out[2]);
  p.out_plane = params::Divisor(out[1]);
  p.out_row = params::Divisor(out[2]);
  p.taps = params::Divisor(taps[0] * taps[1] * taps[2]);
  p.tap_plane = params::Divisor(taps[1]);
  p.tap_row = params::Divisor(taps[2]);
}

}  // namespace

DType conv_accumulation(const Conv& prim, DType y) {
  if (prim.epilogue) return prim.accumulate;
  return is_float(y) && y != DType::float64 ? DType::float32 : y;
}

void fill_conv(const Conv& prim, const SelectRequest& request, params::Conv& p) {
  const TensorDesc &x = request.inputs[0], &w = request.inputs[1], &y = request.outputs[0];
  const size_t channel_axis = prim.channels_last ? x.shape.size() - 1 : 1;
  const int64_t in = x.shape[channel_axis], out = y.shape[channel_axis];
  const int64_t by_groups = prim.transposed ? in : out;
  const int64_t channels = prim.transposed ? w.shape[0] : w.shape[1] * prim.groups;
  if (prim.groups < 1 || by_groups % prim.groups != 0 || channels != in) {
    throw Error(ErrorKind::model, "the channels of x, w and group do not fit each other")
        .expected_got("x with " + std::to_string(channels) + " channels, in " +
                          std::to_string(prim.groups) + " equal groups",
                      std::to_string(in) + " channels in, " + std::to_string(out) + " out");
  }
  fill_axes(prim, request, p);
  p.batch = x.shape[0];
  p.groups = prim.groups;
  p.in_per_group = params::Divisor(in / prim.groups);
  p.out_per_group = params::Divisor(out / prim.groups);
  p.x_batch = x.strides[0];
  p.x_channel = x.strides[channel_axis];
  p.y_batch = out * p.out_pixels.value;
  p.y_channel = prim.channels_last ? 1 : p.out_pixels.value;
  p.y_pixel = prim.channels_last ? out : 1;
}

bool wide_conv(const Conv& prim, const SelectRequest& request, const params::Conv& p) {
  const TensorDesc &x = request.inputs[0], &w = request.inputs[1], &y = request.outputs[0];
  constexpr int64_t limit = int64_t{1} << 30;
  const size_t first = prim.channels_last ? 1 : 2;
  bool wide = p.out_pixels.value >= limit || p.groups * p.out_per_group.value >= limit ||
              p.in_per_group.value * p.taps.value >= limit;
  for (size_t k = 0; k < prim.strides.size(); ++k) {
    const int64_t pad = std::abs(request.dim(prim.pads_begin[k]));
    const int64_t out = y.shape[first + k] * (prim.transposed ? 1 : prim.strides[k]);
    wide = wide || std::max(x.shape[first + k], out) + pad >= limit ||
           w.shape[2 + k] * prim.dilations[k] >= limit;
  }
  return wide;
}

Selection select_conv_kernel(const Conv& prim, const SelectRequest& request, const Tools& tools) {
  const TensorDesc &x = request.inputs[0], &w = request.inputs[1], &y = request.outputs[0];
  if (y.count() == 0) return {};
  params::Conv sizes;
  fill_conv(prim, request, sizes);
  const std::string refusal = conv_tiles_refusal(prim, request, sizes, tools);
  if (refusal.empty()) return conv_tiles(prim, request, sizes, tools);
  LaunchBuilder<params::Conv> launch;
  launch.params = sizes;
  params::Conv& p = launch.params;
  const DType accumulate = conv_accumulation(prim, y.dtype);
  const OutRegion region = out_region(prim.epilogue, request, 4, accumulate, 1);
  bind_region(launch, p.out, region.source, [&](int place) { return region.operand(place); });
  launch.bind(p.x, Source::operand(0));
  launch.bind(p.w, Source::operand(1));
  const bool x_zero = present(request, 2), w_zero = present(request, 3);
  if (x_zero) launch.bind(p.x_zero, Source::operand(2));
  if (w_zero) {
    launch.bind(p.w_zero, Source::operand(3));
    p.w_zero_step = request.inputs[3].count() > 1;
  }
  const bool tiled = p.out_per_group.value >= 8;
  KernelSpec kernel{"kernels/conv.cu", "conv",
                    {define("RLX_X", storage_name(x.dtype)), define("RLX_W", storage_name(w.dtype)),
                     define("RLX_ACCUMULATE", compute_name(accumulate)),
                     define("RLX_X_ZERO", x_zero), define("RLX_W_ZERO", w_zero),
                     define("RLX_X_ZERO_TYPE", zero_name(request, 2)),
                     define("RLX_W_ZERO_TYPE", zero_name(request, 3)),
                     define("RLX_TRANSPOSED", prim.transposed),
                     define("RLX_CHANNELS_LAST", prim.channels_last), define("RLX_FORM", tiled),
                     define("RLX_WIDE", wide_conv(prim, request, sizes))},
                    {{"generated/out.h", region.source.text}}};
  const int64_t tiles = ceil_div(p.out_per_group.value, 64) *
                        ceil_div(p.batch * p.out_pixels.value, 64) * p.groups;
  Selection selection = one_step(
      tiled ? "implicit product" : "direct",
      launch.finish(tools.jit.get(kernel), tiled ? blocks_of(tiles, 256)
                                                 : walk_of(tools, p.batch * p.y_batch)));
  selection.reason = refusal;
  return selection;
}

}  // namespace rlx::cuda
