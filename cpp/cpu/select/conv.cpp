// Picks how a convolution runs, and puts layout changes and the epilogue around it.
//
// Everything fast works channels last. Images that are not are transposed in and out: 0.1 ms each
// for 64 x 56 x 56 against 6 ms for a 3x3 convolution of them, which in NCHW takes oneDNN 10.
#include <array>
#include <optional>
#include <utility>

#include "cpu/kernels/layout.h"
#include "cpu/kernels/widen.h"
#include "cpu/onednn/api.h"
#include "cpu/select/compose.h"
#include "cpu/select/conv_rungs.h"
#include "cpu/select/epilogue.h"
#include "cpu/select/image.h"
#include "cpu/select/select.h"

namespace rlx::cpu {
namespace {

ConvGeometry geometry_of(const Conv& conv, const SelectRequest& request) {
  const TensorDesc &x = request.inputs[0], &w = request.inputs[1], &y = request.outputs[0];
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

void check_geometry(const ConvGeometry& g, const TensorDesc& w) {
  for (int axis = 0; axis < 3; ++axis) {
    if (g.stride[axis] < 1 || g.dilation[axis] < 1) {
      throw Error(ErrorKind::model, "strides and dilations of a convolution must be positive");
    }
  }
  const int64_t by_groups = g.transposed ? g.in_channels : g.out_channels;
  const int64_t channels = g.transposed ? w.shape[0] : w.shape[1] * g.groups;
  if (g.groups < 1 || by_groups % g.groups != 0 || channels != g.in_channels) {
    throw Error(ErrorKind::model, "the channels of x, w and group do not fit each other")
        .expected_got("x with " + std::to_string(channels) + " channels, in " +
                          std::to_string(g.groups) + " equal groups",
                      std::to_string(g.in_channels) + " channels in, " +
                          std::to_string(g.out_channels) + " out");
  }
}

void check_zero_points(const TensorDesc& x_zero, const TensorDesc& w_zero, int64_t channels) {
  const int64_t many = w_zero.count();
  if ((x_zero.dtype == DType::none || x_zero.count() == 1) &&
      (w_zero.dtype == DType::none || many == 1 || many == channels)) {
    return;
  }
  throw Error(ErrorKind::model, "zero points of a convolution are one, or of w one a channel");
}

struct TransposeBody : StepBody {
  int64_t batch, rows, cols;
  size_t item;
  TransposeBody(int64_t batch, int64_t rows, int64_t cols, size_t item)
      : batch(batch), rows(rows), cols(cols), item(item) {}
  void run(const RunArgs& args) const override {
    transpose_each(batch, rows, cols, item, args.operands[0], args.operands[1], args.threads);
  }
};

Selection transpose(int64_t batch, int64_t rows, int64_t cols, DType dtype) {
  Selection made;
  made.steps.push_back(
      {StepKind::launch, std::make_shared<TransposeBody>(batch, rows, cols, size_of(dtype))});
  return made;
}

struct WidenBody : StepBody {
  DType type;
  int64_t count;
  WidenBody(const TensorDesc& x) : type(x.dtype), count(x.count()) {}
  void run(const RunArgs& args) const override {
    widen(type, args.operands[0], static_cast<float*>(args.operands[1]), count, args.threads);
  }
};

Selection widened(const TensorDesc& x) {
  Selection made;
  made.steps.push_back({StepKind::launch, std::make_shared<WidenBody>(x)});
  return made;
}

Dims dense_strides(std::span<const int64_t> shape) {
  Dims strides(shape.size(), 1);
  for (size_t k = shape.size(); k-- > 1;) strides[k - 1] = strides[k] * shape[k];
  return strides;
}

// One convolution while its Selection is put together.
class ConvSelect {
 public:
  ConvSelect(const Conv& conv, const SelectRequest& request) : conv_(conv), request_(request) {
    for (size_t i = 0; i < std::min(inputs_.size(), request.inputs.size()); ++i) {
      inputs_[i] = request.inputs[i];
    }
    const TensorDesc& y = request.outputs[0];
    product_ = y;
    in_place_ = !conv.epilogue || (y.contiguous() && y.dtype == conv.accumulate);
    if (conv.epilogue) {
      product_.dtype = conv.accumulate;
      product_.strides = dense_strides(y.shape);
    }
    geometry_ = geometry_of(conv, bare());
    check_geometry(geometry_, inputs_[1]);
    check_zero_points(inputs_[2], inputs_[3], geometry_.out_channels);
    last_ = geometry_;
    last_.x = dense_channels_last(geometry_.in_channels, geometry_.in);
    last_.y = dense_channels_last(geometry_.out_channels, geometry_.out);
  }

  Selection select() const {
    std::string refusal;
    const bool dense =
        inputs_[0].contiguous() && inputs_[1].contiguous() && product_.contiguous();
    if (!dense) refusal = "strided operands";
    if (dense && may_try("onednn")) {
      if (auto found = by_onednn(refusal)) return std::move(*found);
    }
    if (dense && may_try("depthwise")) {
      if (auto found = conv_depthwise(bare(), last_, refusal)) {
        found->reason = refusal;
        return assemble(std::move(*found), x_moves(), y_moves(), false);
      }
    }
    if (dense && may_try("onednn")) {
      if (auto found = by_widening(refusal)) return std::move(*found);
    }
    if (dense && may_try("gemm")) {
      if (auto found = by_product(conv_gemm, refusal)) return std::move(*found);
      if (auto found = by_product(conv_s8, refusal)) return std::move(*found);
    }
    Selection found = conv_direct(bare(), geometry_);
    found.reason = refusal;
    return assemble(std::move(found), false, false, false);
  }

 private:
  bool may_try(std::string_view rung) const {
    return request_.force.empty() || request_.force == rung;
  }

  // The request of a rung: without extras, for the product.
  SelectRequest bare() const {
    return {request_.prim,    inputs_,        {&product_, 1}, request_.numbers,
            request_.threads, request_.force, request_.packs};
  }

  // Where one of both is 1, channels first and channels last are the same.
  bool x_moves() const {
    return !conv_.channels_last && geometry_.in_channels > 1 && geometry_.in_pixels() > 1;
  }
  bool y_moves() const {
    return !conv_.channels_last && geometry_.out_channels > 1 && geometry_.out_pixels() > 1;
  }

  std::optional<Selection> by_onednn(std::string& refusal) const {
    // Half weights are widened when they are packed.
    const TensorDesc& w = inputs_[1];
    const bool packs = w.constant && is_half(w.dtype);
    for (const TensorDesc* desc : {&inputs_[0], &w, &product_}) {
      if ((desc->dtype != DType::float32 && !(desc == &w && packs)) || desc->count() == 0) {
        refusal = "oneDNN takes float32 here";
        return std::nullopt;
      }
    }
    const auto named = chain();
    if (named && chain_fits(*named)) {
      auto found = onednn_conv(request_, last_, *named, refusal);
      if (!found) return found;
      return assemble(std::move(*found), x_moves(), y_moves(), true);
    }
    auto found = onednn_conv(bare(), last_, {}, refusal);
    if (!found) return found;
    return assemble(std::move(*found), x_moves(), y_moves(), false);
  }

  // Half types: x is widened once, where a product would widen it again for each tap.
  std::optional<Selection> by_widening(std::string& refusal) const {
    const DType type = inputs_[0].dtype;
    if (!is_half(type) || inputs_[1].dtype != type || !inputs_[1].constant ||
        geometry_.taps() == 1 || product_.dtype != DType::float32 || product_.count() == 0 ||
        inputs_[0].count() == 0) {
      return std::nullopt;
    }
    auto inputs = inputs_;
    inputs[0].dtype = DType::float32;
    const SelectRequest wide{request_.prim,    inputs,         {&product_, 1}, request_.numbers,
                             request_.threads, request_.force, request_.packs};
    auto found = onednn_conv(wide, last_, {}, refusal);
    if (!found) return found;
    found->rung += " of float32";
    return assemble(std::move(*found), x_moves(), y_moves(), false, true);
  }

  using ProductRung = std::optional<Selection> (*)(const SelectRequest&, const ConvGeometry&,
                                                   const ConvFusion*, std::string&);

  std::optional<Selection> by_product(ProductRung rung, std::string& refusal) const {
    // The kernel's rows are pixels and its columns channels; so must be the Region's.
    const bool sums = product_.dtype == DType::float32 || product_.dtype == DType::int32;
    const bool fuses = conv_.epilogue && sums && conv_.channels_last &&
                       request_.outputs[0].contiguous();
    std::optional<Selection> found;
    if (fuses) {
      const ConvFusion fusion{*conv_.epilogue, product_, chain()};
      found = rung(request_, last_, &fusion, refusal);
    } else {
      found = rung(bare(), last_, nullptr, refusal);
    }
    if (!found) return found;
    found->reason = refusal;
    return assemble(std::move(*found), x_moves(), y_moves(), fuses);
  }

  std::optional<Epilogue> chain() const {
    const size_t channel_axis = conv_.channels_last ? product_.shape.size() - 1 : 1;
    return match_epilogue(request_, conv_.epilogue, int(conv_operands), channel_axis);
  }

  bool chain_fits(const Epilogue& chain) const {
    if (request_.outputs.size() != 1 || !in_place_) return false;
    for (const EpilogueOp& op : chain) {
      const bool is_image = op.operand >= 0 && op.extent == EpilogueOp::Extent::full;
      if (is_image && y_moves()) return false;
      // oneDNN's tanh takes 3.9 ns an element, a Region behind the convolution 1.8. Its other
      // functions are level with that or ahead (silu 1.1 and 1.2, gelu 1.2 and 2.8).
      using Kind = EpilogueOp::Kind;
      if (op.kind == Kind::tanh || op.kind == Kind::gelu_tanh) return false;
    }
    return true;
  }

  // Puts the layout changes and, unless `fused`, the epilogue around the step that computes; x is
  // made float32 for it where it asks for that.
  Selection assemble(Selection core, bool move_x, bool move_y, bool fused,
                     bool widen_x = false) const {
    const bool region = conv_.epilogue && !fused;
    const size_t inputs = request_.inputs.size();
    if (!move_x && !move_y && !region && !widen_x) return core;
    const ConvGeometry& g = geometry_;
    Composer composer;
    std::string rung = core.rung, reason = core.reason;
    std::vector<Place> operands;
    for (size_t i = 0; i < (fused ? inputs : conv_operands); ++i) {
      operands.push_back(i < inputs ? Place::operand(i) : Place::absent());
    }
    if (move_x) {
      operands[0] = composer.reserve(inputs_[0].bytes());
      composer.add(transpose(g.batch, g.in_channels, g.in_pixels(), inputs_[0].dtype),
                   {Place::operand(0), operands[0]});
    }
    if (widen_x) {
      const Place narrow = std::exchange(
          operands[0], composer.reserve(size_t(inputs_[0].count()) * sizeof(float)));
      composer.add(widened(inputs_[0]), {narrow, operands[0]});
    }
    const Place product =
        in_place_ || fused ? Place::operand(inputs) : composer.reserve(product_.bytes());
    operands.push_back(move_y ? composer.reserve(product_.bytes()) : product);
    const Place computed = operands.back();
    for (size_t i = 1; fused && i < request_.outputs.size(); ++i) {
      operands.push_back(Place::operand(inputs + i));
    }
    composer.add(std::move(core), std::move(operands));
    if (move_y) {
      composer.add(transpose(g.batch, g.out_pixels(), g.out_channels, product_.dtype),
                   {computed, product});
    }
    if (move_x || move_y) rung += " in nhwc";
    if (region) {
      composer.add_epilogue(request_, conv_.epilogue, conv_operands, product_, product);
      rung += " + region";
    }
    return composer.finish(std::move(rung), std::move(reason));
  }

  const Conv& conv_;
  const SelectRequest& request_;
  std::array<TensorDesc, conv_operands> inputs_;
  TensorDesc product_;   // what a rung computes: dense, before the epilogue
  bool in_place_;        // the product can stand where the result will be
  ConvGeometry geometry_, last_;  // as the operands are, and as they are channels last
};

}  // namespace

Selection select_conv(const Conv& conv, const SelectRequest& request) {
  return ConvSelect(conv, request).select();
}

}  // namespace rlx::cpu
