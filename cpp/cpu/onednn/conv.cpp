// Convolution and its transpose by oneDNN: float32, channels last, post-ops for the epilogue.
//
// Measured on one AVX2 core (oneDNN 3.2, 40 GFLOP/s peak): channels last with weights in the
// format that it asks for runs at 36 to 43 GFLOP/s for resnet50, yolo, U-Net and 1-D audio shapes,
// as fast as its own blocked format; plain NCHW falls to gemm:jit at 14 to 30. What falls to
// gemm:jit, ref or conv:any even so (groups of a few channels, depthwise multipliers and 3-D
// depthwise) runs at 1 to 4 and is refused.
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <string_view>

#include "cpu/onednn/api.h"
#include "cpu/onednn/body.h"
#include "cpu/onednn/post_ops.h"

namespace rlx::cpu {
namespace {

using namespace onednn;

struct Operand {  // in oneDNN's order of axes
  Dims dims, strides;
  MemoryDesc desc() const { return strided_desc(DType::float32, dims, strides); }
};

Operand image(const ConvGeometry& g, const ImageStrides& strides, int64_t channels,
              const int64_t* space) {
  Operand made;
  made.dims = {g.batch, channels};
  made.strides = {strides.batch, strides.channel};
  for (int axis = 3 - g.spatial; axis < 3; ++axis) {
    made.dims.push_back(space[axis]);
    made.strides.push_back(strides.space[axis]);
  }
  return made;
}

// ONNX weights are [M, C/g, k...], or [C, M/g, k...] when transposed; oneDNN names the output
// channels first in both and has an axis for the groups when there are several.
Operand weights(const ConvGeometry& g) {
  const int64_t out = g.out_per_group(), in = g.in_per_group(), taps = g.taps();
  Operand made;
  if (g.groups > 1) {
    made.dims.push_back(g.groups);
    made.strides.push_back(out * in * taps);
  }
  for (int64_t d : {out, in}) made.dims.push_back(d);
  const int64_t by_out = g.transposed ? taps : in * taps;
  const int64_t by_in = g.transposed ? out * taps : taps;
  for (int64_t s : {by_out, by_in}) made.strides.push_back(s);
  int64_t stride = taps;
  for (int axis = 3 - g.spatial; axis < 3; ++axis) {
    stride /= g.kernel[axis];
    made.dims.push_back(g.kernel[axis]);
    made.strides.push_back(stride);
  }
  return made;
}

struct Window {  // oneDNN counts dilation from 0 and wants the padding behind spelled out
  Dims strides, dilations, pads_begin, pads_end;
};

Window window(const ConvGeometry& g) {
  Window made;
  for (int axis = 3 - g.spatial; axis < 3; ++axis) {
    const int64_t reach = (g.kernel[axis] - 1) * g.dilation[axis] + 1;
    const int64_t inner = g.transposed ? g.in[axis] : g.out[axis];
    const int64_t outer = g.transposed ? g.out[axis] : g.in[axis];
    made.strides.push_back(g.stride[axis]);
    made.dilations.push_back(g.dilation[axis] - 1);
    made.pads_begin.push_back(g.pad[axis]);
    made.pads_end.push_back((inner - 1) * g.stride[axis] + reach - g.pad[axis] - outer);
  }
  return made;
}

dnnl_status_t create(const ConvGeometry& g, const Window& w, const MemoryDesc& x,
                     const MemoryDesc& weight, const MemoryDesc& bias, const MemoryDesc& y,
                     const Attributes& attributes, PrimitiveDesc& made) {
  if (g.transposed) {
    return dnnl_deconvolution_forward_primitive_desc_create(
        made.out(), engine(), dnnl_forward_inference, dnnl_deconvolution_direct, x.get(),
        weight.get(), bias.get(), y.get(), w.strides.data(), w.dilations.data(),
        w.pads_begin.data(), w.pads_end.data(), attributes.get());
  }
  return dnnl_convolution_forward_primitive_desc_create(
      made.out(), engine(), dnnl_forward_inference, dnnl_convolution_direct, x.get(), weight.get(),
      bias.get(), y.get(), w.strides.data(), w.dilations.data(), w.pads_begin.data(),
      w.pads_end.data(), attributes.get());
}

bool slow(std::string_view implementation) {
  return implementation.find("gemm") != implementation.npos ||
         implementation.find("ref") != implementation.npos ||
         implementation.find("conv:any") != implementation.npos;
}

// Below this many multiplications waking the team costs more than it saves, and a team that
// others keep from their cores costs milliseconds. All or one: its size must not vary.
constexpr int64_t inline_work = 512 * 1024;

int threads_for(const ConvGeometry& g, int threads) {
  const int64_t per_pixel = g.taps() * g.in_per_group() * g.out_channels;
  return g.batch * g.out_pixels() * per_pixel < inline_work ? 1 : threads;
}

}  // namespace

std::optional<Selection> onednn_conv(const SelectRequest& request, const ConvGeometry& g,
                                     const Epilogue& epilogue, std::string& refusal) {
  const auto started = std::chrono::steady_clock::now();
  const int threads = threads_for(g, request.threads);
  const ThreadCount count(threads);
  const Operand x = image(g, g.x, g.in_channels, g.in), w = weights(g);
  const Operand y = image(g, g.y, g.out_channels, g.out);
  PostOpPlan plan = plan_post_ops(epilogue, y.dims, y.strides, true);
  MemoryDesc bias;
  if (plan.bias >= 0) bias = strided_desc(DType::float32, Dims{g.out_channels}, Dims{1});

  PrimitiveDesc desc;
  const dnnl_status_t status = create(g, window(g), x.desc(), any_desc(DType::float32, w.dims),
                                      bias, y.desc(), plan.attributes, desc);
  if (status == dnnl_unimplemented || status == dnnl_invalid_arguments) {
    refusal = "oneDNN does not take this convolution";
    return std::nullopt;
  }
  check(status, "convolution descriptor");
  const std::string implementation = implementation_of(desc);
  if (slow(implementation)) {
    refusal = "oneDNN only has " + implementation + " here, which is slower";
    return std::nullopt;
  }

  Selection selection;
  std::vector<Argument> arguments = std::move(plan.arguments);
  MemoryDesc wanted = query_desc(desc, dnnl_query_weights_md);
  Place packed = packed_weight(request, 1, w.desc(), wanted, selection);
  arguments.push_back({DNNL_ARG_SRC, x.desc(), Place::operand(0)});
  arguments.push_back({DNNL_ARG_WEIGHTS, std::move(wanted), std::move(packed)});
  if (plan.bias >= 0) {
    arguments.push_back({DNNL_ARG_BIAS, std::move(bias), Place::operand(plan.bias)});
  }
  const int result = int(request.inputs.size());
  arguments.push_back({DNNL_ARG_DST, y.desc(), Place::operand(result)});
  selection.workspace = add_scratchpad(desc, selection.workspace, arguments);
  selection.steps.push_back({StepKind::dnn, std::make_shared<PrimitiveBody>(
                                                desc, std::move(arguments), threads)});
  selection.rung = "onednn " + implementation;
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - started;
  selection.creation_seconds = spent.count();
  return selection;
}

}  // namespace rlx::cpu
