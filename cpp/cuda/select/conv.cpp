// Conv: cuDNN with bias, residual and ReLU inside, cuDNN with the epilogue behind it, else kernels
// of our own. Each rung left out says why.
#include "cuda/libs/dnn.h"
#include "cuda/libs/libraries.h"
#include "cuda/select/conv_weights.h"
#include "cuda/select/fallback.h"
#include "cuda/select/select.h"
#include "plan/compose.h"
#include "plan/epilogue.h"

namespace rlx::cuda {
namespace {

using plan::EpilogueOp;
using plan::Place;

constexpr size_t fixed_operands = 4;  // x, w, x_zero, w_zero

struct DnnChain {
  int bias = -1, residual = -1;  // operands of the node
  bool relu = false;
};

std::optional<DnnChain> dnn_chain(const plan::Epilogue& ops) {
  DnnChain chain;
  for (const EpilogueOp& op : ops) {
    if (chain.relu) return std::nullopt;
    const bool sum = op.kind == EpilogueOp::Kind::add;
    if (op.kind == EpilogueOp::Kind::relu && op.alpha == 0.0f) {
      chain.relu = true;
    } else if (sum && op.extent == EpilogueOp::Extent::channel && chain.bias < 0) {
      chain.bias = op.operand;
    } else if (sum && op.extent == EpilogueOp::Extent::full && chain.residual < 0) {
      chain.residual = op.operand;
    } else {
      return std::nullopt;
    }
  }
  return chain;
}

class DnnBody final : public StepBody {
 public:
  std::shared_ptr<const DnnRun> conv;
  Dnn* library = nullptr;
  std::shared_ptr<const void> packed;  // w, when it is a constant
  DnnChain chain;
  size_t result = 0;

  void run(const RunArgs& args) const override {
    void* w = packed ? const_cast<void*>(packed.get()) : args.operands[1];
    void* addresses[5] = {args.operands[0], w, args.operands[result]};
    size_t count = 3;
    if (chain.bias >= 0) addresses[count++] = args.operands[chain.bias];
    if (chain.residual >= 0) addresses[count++] = args.operands[chain.residual];
    library->run(*conv, {addresses, count}, args.workspace, static_cast<Stream>(args.stream));
  }
};

// In the order N, C, spatial, whatever the layout; one spatial dim becomes two.
std::vector<int64_t> ordered(std::span<const int64_t> dims, bool channels_last) {
  std::vector<int64_t> made = {dims[0]};
  if (channels_last) made.push_back(dims.back());
  for (size_t k = 1; k + (channels_last ? 1 : 0) < dims.size(); ++k) made.push_back(dims[k]);
  return made;
}

void widen(std::vector<int64_t>& dims, int64_t extra) {
  if (dims.size() == 3) dims.insert(dims.begin() + 2, extra);
}

std::vector<int64_t> strides_of(std::span<const int64_t> dims, bool channels_last) {
  std::vector<int64_t> strides(dims.size(), 1);
  int64_t next = channels_last ? dims[1] : 1;
  for (size_t k = dims.size(); k-- > 2;) strides[k] = next, next *= dims[k];
  strides[1] = channels_last ? 1 : next;
  if (!channels_last) next *= dims[1];
  strides[0] = next;
  return strides;
}

class ConvSelect {
 public:
  ConvSelect(const Conv& prim, const SelectRequest& request, const Tools& tools)
      : prim_(prim), request_(request), tools_(tools) {}

  Selection select() const {
    std::string refusal;
    const bool asked = request_.force.empty() || request_.force.starts_with("cudnn");
    if (!asked) {
      refusal = "rung '" + std::string(request_.force) + "' was asked for";
    } else if (Dnn* library = tools_.libraries ? tools_.libraries->dnn(refusal) : nullptr) {
      if (auto found = by_library(*library, refusal)) return std::move(*found);
    } else {
      check_not_forced(request_.force, "cudnn", refusal);
    }
    log_fallback(tools_.options.log_fallback, "Conv", refusal);
    Selection selection = select_conv_kernel(prim_, request_, tools_);
    if (!refusal.empty() && !selection.reason.empty()) refusal += "; ";
    selection.reason = refusal + selection.reason;
    return selection;
  }

 private:
  const TensorDesc& x() const { return request_.inputs[0]; }
  const TensorDesc& w() const { return request_.inputs[1]; }
  const TensorDesc& y() const { return request_.outputs[0]; }
  bool given(size_t i) const {
    return i < request_.inputs.size() && request_.inputs[i].dtype != DType::none;
  }

  // cuDNN takes no half weights of float32 images.
  bool widened() const { return widens_weights(x(), w()); }

  bool takes(std::string& refusal) const {
    const DType type = x().dtype;
    if ((type != DType::float32 && !is_half(type)) || (w().dtype != type && !widened())) {
      refusal = "cuDNN is not asked for these types";
    } else if (prim_.transposed || given(2) || given(3)) {
      refusal = "transposed, or with zero points";
    } else if (!x().contiguous() || !w().contiguous() || !y().contiguous()) {
      refusal = "strided operands";
    } else if (x().shape.size() < 3 || x().shape.size() > 5) {
      refusal = "cuDNN is asked for 1 to 3 spatial dims";
    } else if (x().count() == 0) {
      refusal = "nothing to convolve";
    }
    return refusal.empty();
  }

  std::optional<Selection> by_library(Dnn& library, std::string& refusal) const {
    if (!takes(refusal)) return std::nullopt;
    const size_t channel = prim_.channels_last ? y().shape.size() - 1 : 1;
    // Fused and in groups, cuDNN only has its last resort: 20 times slower than apart.
    const bool fuse = request_.outputs.size() == 1 && y().dtype == x().dtype &&
                      (prim_.groups == 1 || !prim_.epilogue) &&
                      request_.force != "cudnn + region";
    if (fuse) {
      const auto named = plan::match_epilogue(request_, prim_.epilogue, int(fixed_operands),
                                              channel, y().dtype);
      const auto chain = named ? dnn_chain(*named) : std::nullopt;
      if (chain) {
        if (auto body = convolution(library, *chain, refusal)) {
          body->result = request_.inputs.size();
          return finish(std::move(body), named->empty() ? "cudnn" : "cudnn + epilogue");
        }
      }
    }
    if (!prim_.epilogue) return std::nullopt;
    return with_region(library, refusal);
  }

  std::optional<Selection> with_region(Dnn& library, std::string& refusal) const {
    TensorDesc between = y();
    between.dtype = x().dtype;
    auto body = convolution(library, {}, refusal);
    if (!body) return std::nullopt;
    body->result = fixed_operands;
    plan::Composer composer;
    const bool in_place = y().dtype == between.dtype && request_.outputs.size() == 1;
    const Place at = in_place ? Place::operand(request_.inputs.size())
                              : composer.reserve(between.bytes());
    std::vector<Place> operands;
    for (size_t i = 0; i < fixed_operands; ++i) {
      operands.push_back(i < request_.inputs.size() ? Place::operand(i) : Place::absent());
    }
    operands.push_back(at);
    Selection core = finish(std::move(body), "");
    const uint64_t unread = core.unread;
    composer.add(std::move(core), std::move(operands));
    const auto by_kernel = [&](const SelectRequest& part) {
      return select_region(std::get<Region>(part.prim), part, tools_);
    };
    composer.add_epilogue(by_kernel, request_, prim_.epilogue, fixed_operands, between, at);
    Selection whole = composer.finish("cudnn + region", "the library has no such epilogue");
    whole.unread = unread;
    return whole;
  }

  Selection finish(std::shared_ptr<DnnBody> body, std::string rung) const {
    Selection selection;
    selection.workspace = Dnn::workspace(*body->conv);
    selection.unread = body->packed ? 2 : 0;
    selection.rung = std::move(rung);
    selection.reason = "engine " + std::to_string(body->conv->plan->engine) +
                       (body->conv->plan->compiled ? ", compiled at run time" : "") +
                       (widened() ? ", half weights widened once" : "");
    selection.steps.push_back({StepKind::dnn, std::move(body)});
    return selection;
  }

  std::shared_ptr<DnnBody> convolution(Dnn& library, const DnnChain& chain,
                                       std::string& refusal) const {
    DnnConv c;
    c.dtype = x().dtype, c.tf32 = tools_.options.tf32, c.groups = prim_.groups;
    c.bias = chain.bias >= 0, c.residual = chain.residual >= 0, c.relu = chain.relu;
    c.x = ordered(x().shape, prim_.channels_last);
    c.w = ordered(w().shape, false);
    c.y = ordered(y().shape, prim_.channels_last);
    for (size_t k = 0; k < prim_.strides.size(); ++k) {
      c.strides.push_back(prim_.strides[k]);
      c.dilations.push_back(prim_.dilations[k]);
      c.pads_begin.push_back(request_.dim(prim_.pads_begin[k]));
      c.pads_end.push_back(end_pad(k));
    }
    if (c.strides.size() == 1) {
      for (auto* one : {&c.strides, &c.dilations}) one->insert(one->begin(), 1);
      for (auto* none : {&c.pads_begin, &c.pads_end}) none->insert(none->begin(), 0);
    }
    for (auto* dims : {&c.x, &c.w, &c.y}) widen(*dims, 1);
    auto body = std::make_shared<DnnBody>();
    const bool last = prim_.channels_last && w().constant != nullptr;
    c.x_strides = strides_of(c.x, prim_.channels_last);
    c.y_strides = strides_of(c.y, prim_.channels_last);
    c.w_strides = strides_of(c.w, last);
    body->conv = library.convolution(c, refusal);
    if (!body->conv) return nullptr;
    if (last || widened()) body->packed = pack_conv_weights(prim_, request_, tools_, last);
    body->library = &library;
    body->chain = chain;
    return body;
  }

  // The padding that gives exactly the output's size: less than asked for where windows drop.
  int64_t end_pad(size_t k) const {
    const size_t axis = k + (prim_.channels_last ? 1 : 2);
    const int64_t reach = int64_t(prim_.dilations[k]) * (w().shape[2 + k] - 1) + 1;
    return std::max<int64_t>((y().shape[axis] - 1) * prim_.strides[k] + reach - x().shape[axis] -
                                 request_.dim(prim_.pads_begin[k]),
                             0);
  }

  const Conv& prim_;
  const SelectRequest& request_;
  const Tools& tools_;
};

}  // namespace

Selection select_conv(const Conv& prim, const SelectRequest& request, const Tools& tools) {
  return ConvSelect(prim, request, tools).select();
}

}  // namespace rlx::cuda
