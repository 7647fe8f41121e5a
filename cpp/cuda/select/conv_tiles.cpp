// Convolutions as products on tensor cores: one tile for all, and parts of k are added by the same
// kernel, so that a new size compiles nothing.
#include "core/half.h"
#include "cuda/select/conv_kernel.h"
#include "cuda/select/conv_weights.h"
#include "cuda/select/epilogue.h"
#include "cuda/select/product_choice.h"

namespace rlx::cuda {
namespace {

constexpr int least_filters = 8;    // of a group; fewer waste most of a tile
constexpr int64_t least_depth = 8, depth_of_few_filters = 128;
constexpr int64_t least_slices = 4;   // of a part of k
constexpr int64_t worth_joining = 8;  // slices that a block is spared

// One for all sizes: 64 pixels by 64 channels of a group.
constexpr int side = 64;
constexpr TileForm tile{side, side, 32, 32, 128, 3};

// Channels are innermost in k, where weights can be packed so; else the taps are, as they lie.
struct Order {
  bool packs, taps_inner;
};

Order order_of(const Conv& prim, const SelectRequest& request, const params::Conv& p) {
  const TensorDesc &x = request.inputs[0], &w = request.inputs[1];
  const bool several = p.taps.value > 1;
  const bool packs = w.constant && (several || prim.transposed || widens_weights(x, w));
  return {packs, several && !packs};
}

// Parts of k that give every multiprocessor blocks, where they are long enough to pay for a join.
int64_t slices_of_part(int64_t tiles, int64_t slices, int64_t multiprocessors) {
  const int64_t wanted = std::min(2 * multiprocessors / tiles, slices / least_slices);
  if (wanted < 2) return slices;
  const int64_t each = ceil_div(slices, wanted);
  return slices - each >= worth_joining ? each : slices;
}

int64_t depth_of(const params::Conv& p) { return p.in_per_group.value * p.taps.value; }

KernelSpec kernel_of(const Conv& prim, const SelectRequest& request, const params::Conv& p,
                     bool taps_inner, const OutRegion& out, int vector) {
  const TensorDesc& x = request.inputs[0];
  // What is copied as one, of pixels and of weights.
  const int chunk = taps_inner ? 1 : fitting_vector(16 / int(size_of(x.dtype)),
                                                    p.in_per_group.value);
  KernelSpec kernel{"kernels/conv_mma.cu", "conv_mma", {}, {{"generated/out.h", out.source.text}}};
  for (std::string one :
       {define("RLX_TILE_M", tile.m), define("RLX_TILE_N", tile.n),
        define("RLX_WARP_M", tile.warp_m), define("RLX_WARP_N", tile.warp_n),
        define("RLX_SLICE", tile.slice), define("RLX_STAGES", tile.stages),
        define("RLX_T", storage_name(x.dtype)), define("RLX_TRANSPOSED", prim.transposed),
        define("RLX_CHANNELS_LAST", prim.channels_last), define("RLX_TAPS_INNER", taps_inner),
        define("RLX_WIDE", wide_conv(prim, request, p)), define("RLX_CHUNK", chunk),
        define("RLX_VECTOR", vector)}) {
    kernel.defines.push_back(std::move(one));
  }
  return kernel;
}

}  // namespace

std::string conv_tiles_refusal(const Conv& prim, const SelectRequest& request,
                               const params::Conv& p, const Tools& tools) {
  const TensorDesc &x = request.inputs[0], &w = request.inputs[1];
  const bool half = is_half(x.dtype), converted = widens_weights(x, w);
  if (request.force == "kernel") return "takes every type and layout";
  for (size_t zero : {2, 3}) {
    if (zero < request.inputs.size() && request.inputs[zero].dtype != DType::none) {
      return "zero points";
    }
  }
  if ((!half && x.dtype != DType::float32) || (w.dtype != x.dtype && !converted) ||
      conv_accumulation(prim, request.outputs[0].dtype) != DType::float32) {
    return "tensor cores take no such types";
  }
  if (!half && !tools.options.tf32) return "float32 without TF32";
  if (tools.driver.info().capability < 80) return "the card has no such tensor cores";
  if (prim.transposed && !w.constant) return "transposed, by weights that are no constants";
  if (!x.contiguous() || !w.contiguous()) return "strided operands";
  const bool few = p.out_per_group.value < least_filters;
  if (few && p.groups > 1) return "few filters in a group: tensor cores would idle";
  if (depth_of(p) < (few ? depth_of_few_filters : least_depth)) {
    return "few products for each result: tensor cores would idle";
  }
  return "";
}

Selection conv_tiles(const Conv& prim, const SelectRequest& request, const params::Conv& sizes,
                     const Tools& tools) {
  const Order order = order_of(prim, request, sizes);
  LaunchBuilder<params::ConvTiles> launch;
  params::ConvTiles& p = launch.params;
  static_cast<params::Conv&>(p) = sizes;
  Selection made;
  launch.bind(p.x, Source::operand(0));
  if (order.packs) {
    const auto packed = pack_conv_weights(prim, request, tools, true);
    p.w = packed.get();
    launch.keep(packed);
    made.unread = 2;
  } else {
    launch.bind(p.w, Source::operand(1));
  }
  const OutRegion out = out_region(prim.epilogue, request, 4, DType::float32,
                                   prim.channels_last ? 4 : 1);
  bind_region(launch, p.out, out.source, [&](int place) { return out.operand(place); });
  const int vector = fitting_vector(out.source.vector, p.out_per_group.value);
  const KernelPtr kernel = tools.jit.get(kernel_of(prim, request, sizes, order.taps_inner,
                                                   out, vector));
  const int64_t tiles = ceil_div(p.out_per_group.value, side) *
                        ceil_div(p.batch * p.out_pixels.value, side) * p.groups;
  const size_t size = size_of(request.inputs[0].dtype);
  const int64_t unit = tile.slice / int64_t(size);
  const int64_t slices = ceil_div(depth_of(p), unit);
  const int64_t each = slices_of_part(tiles, slices, tools.driver.info().multiprocessors);
  p.k_part = each * unit;
  p.splits = int(ceil_div(slices, each));
  const int64_t count = p.batch * p.y_batch;
  made.rung = "tensor core convolution";
  made.reason = "tiles of " + std::to_string(side) + " pixels by as many channels";
  if (widens_weights(request.inputs[0], request.inputs[1])) {
    made.reason += ", half weights widened once";
  }
  if (p.splits > 1) {
    launch.bind(p.partial, Source::workspace());
    made.workspace = size_t(p.splits * count) * sizeof(float);
    made.reason += ", k in " + std::to_string(p.splits) + " parts";
  }
  const size_t shared = tile_bytes(tile, size, true, prim.channels_last);
  made.steps.push_back(
      launch.finish(kernel, blocks_of(tiles * p.splits, threads_of(tile), shared)));
  if (p.splits > 1) {
    p.join = 1;
    made.steps.push_back(launch.finish(kernel, walk_of(tools, count / vector, 128)));
  }
  return made;
}

}  // namespace rlx::cuda
