// Convolution by our own loops: depthwise, vectorised over channels; and plain, for everything.
#include "cpu/kernels/conv_depthwise.h"
#include "cpu/kernels/conv_direct.h"
#include "cpu/select/compose.h"
#include "cpu/select/conv_rungs.h"

namespace rlx::cpu {
namespace {

struct DirectBody : StepBody {
  DirectConv conv;
  void run(const RunArgs& args) const override {
    void* const* o = args.operands;
    direct_conv(conv, o[0], o[1], o[2], o[3], o[4], args.threads);
  }
};

struct DepthwiseBody : StepBody {
  DepthwiseConv conv;
  DType w_type = DType::none, w_zero_type = DType::none;
  bool w_zero_per_channel = false;
  std::shared_ptr<const void> packed;  // null: pack on each run, into the workspace

  void run(const RunArgs& args) const override {
    void* const* o = args.operands;
    const void* weights = packed.get();
    if (!weights) {
      depthwise_pack(conv.geometry, w_type, o[1], w_zero_type, o[3], w_zero_per_channel,
                     args.workspace);
      weights = args.workspace;
    }
    depthwise_conv(conv, o[0], weights, o[2], o[4], args.threads);
  }
};

}  // namespace

Selection conv_direct(const SelectRequest& request, const ConvGeometry& g) {
  auto body = std::make_shared<DirectBody>();
  DirectConv& conv = body->conv;
  conv.geometry = g;
  conv.x_type = request.inputs[0].dtype;
  conv.w_type = request.inputs[1].dtype;
  conv.x_zero_type = request.inputs[2].dtype;
  conv.w_zero_type = request.inputs[3].dtype;
  conv.w_zero_per_channel = request.inputs[3].count() > 1;
  conv.y_type = request.outputs[0].dtype;
  if (!direct_conv_takes(conv.x_type, conv.w_type, conv.y_type)) {
    throw Error(ErrorKind::unsupported, "convolution has no kernel for these types")
        .expected_got("floats of one type, or int8 and uint8 with int32 results",
                      std::string(name_of(conv.x_type)) + ", " + name_of(conv.w_type) + " -> " +
                          name_of(conv.y_type));
  }
  for (int axis = 0; axis < 3; ++axis) conv.taps[axis] = axis_taps(g, axis);
  Selection selection;
  selection.rung = "direct";
  selection.steps.push_back({StepKind::launch, std::move(body)});
  return selection;
}

std::optional<Selection> conv_depthwise(const SelectRequest& request, const ConvGeometry& g,
                                        std::string& refusal) {
  const TensorDesc &x = request.inputs[0], &w = request.inputs[1], &w_zero = request.inputs[3];
  if (g.in_per_group() != 1 || g.groups == 1) {
    refusal += "; not depthwise";
    return std::nullopt;
  }
  if (!depthwise_conv_takes(x.dtype, w.dtype, request.outputs[0].dtype)) {
    refusal += "; depthwise lacks this type";
    return std::nullopt;
  }
  auto body = std::make_shared<DepthwiseBody>();
  body->conv.geometry = g;
  for (int axis = 0; axis < 3; ++axis) body->conv.taps[axis] = axis_taps(g, axis);
  body->conv.x_type = x.dtype;
  body->conv.x_zero_type = request.inputs[2].dtype;
  body->conv.y_type = request.outputs[0].dtype;
  body->w_type = w.dtype;
  body->w_zero_type = w_zero.dtype;
  body->w_zero_per_channel = w_zero.count() > 1;
  Selection selection;
  selection.rung = "depthwise";
  const size_t bytes = depthwise_packed_bytes(g, w.dtype);
  if (w.constant && (w_zero.constant || w_zero.dtype == DType::none)) {
    const void* zero = w_zero.constant ? w_zero.constant->data : nullptr;
    const std::string format = "depthwise" + (zero ? w_zero.constant->source : std::string());
    body->packed = request.packs.get(*w.constant, format, bytes, [&](void* to) {
      depthwise_pack(g, w.dtype, w.constant->data, w_zero.dtype, zero, body->w_zero_per_channel,
                     to);
    });
  } else {
    selection.workspace = bytes;
  }
  selection.steps.push_back({StepKind::launch, std::move(body)});
  return selection;
}

}  // namespace rlx::cpu
