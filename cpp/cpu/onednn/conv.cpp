// Convolution and its transpose by oneDNN: float32, channels last, post-ops for the epilogue.
//
// Measured on one AVX2 core (oneDNN 3.2, 40 GFLOP/s peak): channels last with weights in the
// format that it asks for runs at 36 to 43 GFLOP/s for resnet50, yolo, U-Net and 1-D audio shapes,
// as fast as its own blocked format; plain NCHW falls to gemm:jit at 14 to 30. What falls to
// gemm:jit, ref or conv:any even so (groups of a few channels, depthwise multipliers and 3-D
// depthwise) runs at 1 to 4 and is refused.
#include <algorithm>
#include <chrono>
#include <string_view>

#include "cpu/kernels/conv_parts.h"
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

// A long row whose weights lie beyond the second cache: oneDNN streams them for each block of the
// row. 5 taps of 256 to 512 channels at 508 places: a matrix product takes 0.7 of its time.
bool streams_weights(const ConvGeometry& g) {
  const int64_t weights = g.taps() * g.in_per_group() * g.out_channels;
  int wide = 0;  // axes of an image: a row may be written as one of two axes
  for (int axis = 0; axis < 3; ++axis) wide += g.in[axis] > 1 || g.kernel[axis] > 1;
  return wide == 1 && g.taps() > 1 && weights > 256 * 1024 && g.out_pixels() >= 128;
}

// One distinct geometry among the parts of a convolution.
struct Compiled {
  ConvGeometry geometry;
  PrimitiveDesc desc;
  SharedPrimitive primitive;
};

bool same_shape(const ConvGeometry& a, const ConvGeometry& b) {
  return a.batch == b.batch && std::ranges::equal(a.in, b.in) &&
         std::ranges::equal(a.out, b.out) && std::ranges::equal(a.pad, b.pad);
}

// Puts a convolution together out of its parts.
class PartedConv {
 public:
  PartedConv(const SelectRequest& request, const Epilogue& epilogue)
      : request_(request), epilogue_(epilogue) {}

  // False, and the reason, when oneDNN has nothing fast.
  bool compile(const std::vector<ConvPart>& parts, std::string& refusal) {
    const OneThread one;
    for (const ConvPart& part : parts) {
      if (!find(part.geometry) && !compile(part.geometry, refusal)) return false;
    }
    return true;
  }

  Selection finish(const std::vector<ConvPart>& parts) {
    Selection selection;
    const MemoryDesc given = weights(parts[0].geometry).desc();
    const Place packed = packed_weight(request_, 1, given, wanted_, selection);
    size_t scratch = 0;
    for (const Compiled& c : compiled_) {
      scratch = std::max(scratch, aligned(size_of(query_desc(c.desc, dnnl_query_scratchpad_md))));
    }
    const size_t at = aligned(selection.workspace);
    std::vector<PrimitiveBody> bodies;
    for (const ConvPart& part : parts) bodies.push_back(body(part, packed, at));
    const size_t side_by_side = std::min(parts.size(), size_t(std::max(request_.threads, 1)));
    selection.workspace = at + side_by_side * scratch;
    selection.steps.push_back(
        {StepKind::dnn, std::make_shared<PartsBody>(std::move(bodies), scratch)});
    selection.rung = std::string("onednn ") + implementation_of(compiled_[0].desc);
    return selection;
  }

 private:
  const Compiled* find(const ConvGeometry& g) const {
    for (const Compiled& c : compiled_) {
      if (same_shape(c.geometry, g)) return &c;
    }
    return nullptr;
  }

  // All parts read the weights in the format that the first one asked for.
  bool compile(const ConvGeometry& g, std::string& refusal) {
    const Operand x = image(g, g.x, g.in_channels, g.in), w = weights(g);
    const Operand y = image(g, g.y, g.out_channels, g.out);
    const PostOpPlan plan = plan_post_ops(epilogue_, y.dims, y.strides, 0);
    Compiled made;
    made.geometry = g;
    const MemoryDesc format =
        compiled_.empty() ? any_desc(DType::float32, w.dims) : clone(wanted_.get());
    const dnnl_status_t status = create(g, window(g), x.desc(), format, bias_desc(plan, g),
                                        y.desc(), plan.attributes, made.desc);
    if (status == dnnl_unimplemented || status == dnnl_invalid_arguments) {
      refusal = "oneDNN does not take this convolution";
      return false;
    }
    check(status, "convolution descriptor");
    if (slow(implementation_of(made.desc))) {
      refusal = std::string("oneDNN only has ") + implementation_of(made.desc) +
                " here, which is slower";
      return false;
    }
    if (compiled_.empty()) wanted_ = query_desc(made.desc, dnnl_query_weights_md);
    made.primitive = make_primitive(made.desc);
    compiled_.push_back(std::move(made));
    return true;
  }

  static MemoryDesc bias_desc(const PostOpPlan& plan, const ConvGeometry& g) {
    if (plan.bias < 0) return {};
    return strided_desc(DType::float32, Dims{g.out_channels}, Dims{1});
  }

  PrimitiveBody body(const ConvPart& part, const Place& packed, size_t scratch_at) const {
    const ConvGeometry& g = part.geometry;
    const Compiled& compiled = *find(g);
    const Operand x = image(g, g.x, g.in_channels, g.in);
    const Operand y = image(g, g.y, g.out_channels, g.out);
    const size_t x_offset = size_t(part.x_offset) * sizeof(float);
    const size_t y_offset = size_t(part.y_offset) * sizeof(float);
    PostOpPlan plan = plan_post_ops(epilogue_, y.dims, y.strides, y_offset);
    std::vector<Argument> arguments = std::move(plan.arguments);
    arguments.push_back({DNNL_ARG_SRC, x.desc(), Place::operand(0), x_offset});
    arguments.push_back({DNNL_ARG_WEIGHTS, clone(wanted_.get()), packed});
    if (plan.bias >= 0) {
      arguments.push_back({DNNL_ARG_BIAS, bias_desc(plan, g), Place::operand(plan.bias)});
    }
    const int result = int(request_.inputs.size());
    arguments.push_back({DNNL_ARG_DST, y.desc(), Place::operand(result), y_offset});
    add_scratchpad(compiled.desc, scratch_at, arguments);
    return {compiled.primitive, std::move(arguments)};
  }

  const SelectRequest& request_;
  const Epilogue& epilogue_;
  std::vector<Compiled> compiled_;
  MemoryDesc wanted_;  // the weights' format
};

}  // namespace

std::optional<Selection> onednn_conv(const SelectRequest& request, const ConvGeometry& g,
                                     const Epilogue& epilogue, std::string& refusal) {
  if (request.force.empty() && streams_weights(g)) {
    refusal = "a matrix product reads these weights less often";
    return std::nullopt;
  }
  const auto started = std::chrono::steady_clock::now();
  const std::vector<ConvPart> parts = conv_parts(g, request.threads);
  PartedConv conv(request, epilogue);
  if (!conv.compile(parts, refusal)) return std::nullopt;
  Selection selection = conv.finish(parts);
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - started;
  selection.creation_seconds = spent.count();
  return selection;
}

}  // namespace rlx::cpu
