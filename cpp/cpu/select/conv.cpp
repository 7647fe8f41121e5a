// Picks how a convolution runs: oneDNN, or our loops; and what happens to its epilogue.
#include <optional>

#include "cpu/kernels/conv.h"
#include "cpu/kernels/conv_direct.h"
#include "cpu/onednn/api.h"
#include "cpu/select/compose.h"
#include "cpu/select/epilogue.h"
#include "cpu/select/image.h"
#include "cpu/select/select.h"

namespace rlx::cpu {
namespace {

constexpr size_t first_extra = 4;  // after x, w, x_zero, w_zero

const TensorDesc& input(const SelectRequest& request, size_t index) {
  static const TensorDesc absent;
  return index < request.inputs.size() ? request.inputs[index] : absent;
}

ConvGeometry geometry_of(const Conv& conv, const SelectRequest& request, const TensorDesc& y) {
  const TensorDesc &x = request.inputs[0], &w = request.inputs[1];
  const size_t first_space = conv.channels_last ? 1 : 2;
  const size_t channel = conv.channels_last ? x.shape.size() - 1 : 1;
  ConvGeometry g;
  g.spatial = int(x.shape.size()) - 2;
  g.batch = x.shape[0];
  g.groups = conv.groups;
  g.in_channels = x.shape[channel];
  g.out_channels = y.shape[channel];
  g.transposed = conv.transposed;
  for (int k = 0; k < g.spatial; ++k) {
    const int axis = 3 - g.spatial + k;
    const size_t space = first_space + size_t(k);
    g.in[axis] = x.shape[space];
    g.out[axis] = y.shape[space];
    g.kernel[axis] = w.shape[size_t(2 + k)];
    g.stride[axis] = conv.strides[size_t(k)];
    g.dilation[axis] = conv.dilations[size_t(k)];
    g.pad[axis] = request.dim(conv.pads_begin[size_t(k)]);
  }
  g.x = image_strides(x, conv.channels_last);
  g.y = image_strides(y, conv.channels_last);
  return g;
}

struct DirectBody : StepBody {
  DirectConv conv;
  void run(const RunArgs& args) const override {
    void* const* o = args.operands;
    direct_conv(conv, o[0], o[1], o[2], o[3], o[4], args.threads);
  }
};

// The plain loops; operands x, w, x_zero, w_zero, y.
Selection direct(const SelectRequest& request, const ConvGeometry& g, DType product) {
  auto body = std::make_shared<DirectBody>();
  DirectConv& conv = body->conv;
  conv.geometry = g;
  conv.x_type = request.inputs[0].dtype;
  conv.w_type = request.inputs[1].dtype;
  conv.x_zero_type = input(request, 2).dtype;
  conv.w_zero_type = input(request, 3).dtype;
  conv.w_zero_per_channel = input(request, 3).count() > 1;
  conv.y_type = product;
  for (int axis = 0; axis < 3; ++axis) conv.sources[axis] = tap_sources(g, axis);
  Selection selection;
  selection.rung = "direct";
  selection.steps.push_back({StepKind::launch, std::move(body)});
  return selection;
}

// Runs the epilogue as a step of its own on the product, in place where y can hold that.
Selection with_region(const SelectRequest& request, const Conv& conv, Selection product,
                      const TensorDesc& product_desc) {
  Composer composer;
  const size_t inputs = request.inputs.size();
  const TensorDesc& y = request.outputs[0];
  const bool in_place = y.dtype == product_desc.dtype && y.count() == product_desc.count();
  const Place at = in_place ? Place::operand(inputs) : composer.reserve(product_desc.bytes());
  std::string rung = product.rung + " + region", reason = product.reason;
  std::vector<Place> operands;
  for (size_t i = 0; i < first_extra; ++i) operands.push_back(Place::operand(i));
  operands.push_back(at);
  composer.add(std::move(product), std::move(operands));

  std::vector<TensorDesc> descs = {product_desc};
  operands = {at};
  for (size_t i = first_extra; i < inputs; ++i) {
    descs.push_back(request.inputs[i]);
    operands.push_back(Place::operand(i));
  }
  for (size_t i = 0; i < request.outputs.size(); ++i) {
    operands.push_back(Place::operand(inputs + i));
  }
  const SelectRequest part{*conv.epilogue,  descs,         request.outputs, request.numbers,
                           request.threads, request.force, request.packs};
  composer.add(select_region(*conv.epilogue, part), std::move(operands));
  return composer.finish(std::move(rung), std::move(reason));
}

bool dense_float(const TensorDesc& desc) {
  return desc.dtype == DType::float32 && desc.contiguous() && desc.count() > 0;
}

std::optional<Selection> by_onednn(const SelectRequest& request, const Conv& conv,
                                   const ConvGeometry& g, const TensorDesc& product,
                                   std::string& refusal) {
  if (!dense_float(request.inputs[0]) || !dense_float(request.inputs[1]) ||
      !dense_float(product)) {
    refusal = "oneDNN takes dense float32 only";
    return std::nullopt;
  }
  const size_t channel_axis = conv.channels_last ? product.shape.size() - 1 : 1;
  const auto chain = match_epilogue(request, conv.epilogue, int(first_extra), channel_axis);
  if (chain && request.outputs.size() == 1 && request.outputs[0].dtype == DType::float32) {
    return onednn_conv(request, g, *chain, refusal);
  }
  auto found = onednn_conv(request, g, {}, refusal);
  if (found && conv.epilogue) found = with_region(request, conv, std::move(*found), product);
  return found;
}

bool may_try(const SelectRequest& request, std::string_view rung) {
  return request.force.empty() || request.force == rung;
}

}  // namespace

Selection select_conv(const Conv& conv, const SelectRequest& request) {
  const TensorDesc& y = request.outputs[0];
  TensorDesc product = y;  // before the epilogue: the same shape, dense, of another type
  if (conv.epilogue) product.dtype = conv.accumulate;
  const ConvGeometry g = geometry_of(conv, request, product);
  std::string refusal;
  if (may_try(request, "onednn")) {
    if (auto found = by_onednn(request, conv, g, product, refusal)) return std::move(*found);
  }
  Selection found = direct(request, g, product.dtype);
  found.reason = refusal;
  return conv.epilogue ? with_region(request, conv, std::move(found), product) : found;
}

}  // namespace rlx::cpu
