// Attention: cuDNN where it takes the form, else kernels of our own, which take every form.
#include <algorithm>
#include <limits>

#include "cuda/libs/dnn.h"
#include "cuda/libs/libraries.h"
#include "cuda/select/fallback.h"
#include "cuda/select/select.h"

namespace rlx::cuda {
namespace {

class DnnAttentionBody final : public StepBody {
 public:
  std::shared_ptr<const DnnRun> attention;
  Dnn* library = nullptr;
  float scale = 1;
  size_t result = 0;
  bool causal = false;

  void run(const RunArgs& args) const override {
    float scale_now = scale, infinity = -std::numeric_limits<float>::infinity();
    void* addresses[6] = {args.operands[0], args.operands[1], args.operands[2],
                          args.operands[result], &scale_now};
    size_t count = 5;
    if (causal) addresses[count++] = &infinity;
    library->run(*attention, {addresses, count}, args.workspace, static_cast<Stream>(args.stream));
  }
};

std::vector<int64_t> head_strides(const TensorDesc& t, HeadLayout layout) {
  const bool first = layout == HeadLayout::bhsd;
  // A batch of one lies around everything, whatever a view of it says.
  int64_t batch = t.strides[0];
  if (t.shape[0] == 1) {
    for (size_t k = 1; k < 4; ++k) batch = std::max(batch, t.shape[k] * t.strides[k]);
  }
  return {batch, t.strides[first ? 1 : 2], t.strides[first ? 2 : 1], t.strides[3]};
}

// Why cuDNN cannot read it; empty when rows are neighbours that begin aligned.
std::string layout_refusal(const TensorDesc& t, HeadLayout layout) {
  if (t.count() == 0) return "nothing to attend to";
  const std::vector<int64_t> strides = head_strides(t, layout);
  for (size_t k = 0; k < 3; ++k) {
    if (strides[k] % 8 != 0) return "rows that begin at odd addresses";
  }
  return strides[3] == 1 ? "" : "strides within rows";
}

// Whether there is room behind the rows of keys or values, before the next head or image: a past
// grows into its buffer, and each length would be compiled anew.
bool grows(const TensorDesc& t, HeadLayout layout) {
  const std::vector<int64_t> strides = head_strides(t, layout);
  const int64_t rows = t.shape[layout == HeadLayout::bhsd ? 2 : 1];
  int64_t behind = 0;
  for (size_t k = 0; k < 2; ++k) {
    if (strides[k] > strides[2] && (behind == 0 || strides[k] < behind)) behind = strides[k];
  }
  return behind > rows * strides[2];
}

std::string refusal_of(const Attention& prim, const SelectRequest& request) {
  const DType dtype = request.inputs[0].dtype;
  const auto& q = request.inputs[0].shape;
  const bool half = is_half(dtype);
  // In float32 its plan compiles for one to two seconds: only on request.
  if (!half && !(dtype == DType::float32 && request.force == "cudnn")) {
    return "cuDNN's attention is asked for half types only";
  }
  if (q[3] % 8 != 0 || request.inputs[2].shape[3] % 8 != 0 || q[3] > 128 ||
      request.inputs[2].shape[3] > 128) {
    return "cuDNN takes head dims up to 128, multiples of 8";
  }
  // Its plans are compiled for each length, and a text that grows has another one each time; for
  // few rows a kernel of ours is as good and needs no plan.
  const auto few = [](const TensorDesc& t, HeadLayout layout) {
    return t.shape[layout == HeadLayout::bhsd ? 2 : 1] < 16;
  };
  const bool asked = request.force.starts_with("cudnn");
  if (!asked && few(request.inputs[0], prim.q_layout)) return "few rows: no plan for each length";
  if (!asked && few(request.inputs[1], prim.k_layout)) return "few keys: not worth a plan";
  if (prim.causal && request.dim(prim.causal_offset) != 0) return "a causal mask with an offset";
  // Where a mask hides all keys of a row, cuDNN gives the mean of the values, not zeros.
  if (prim.score) return "a mask, which may hide whole rows, or another change of the scores";
  const std::pair<const TensorDesc*, HeadLayout> operands[] = {
      {&request.inputs[0], prim.q_layout},
      {&request.inputs[1], prim.k_layout},
      {&request.inputs[2], prim.v_layout},
      {&request.outputs[0], prim.y_layout}};
  for (const auto& [operand, layout] : operands) {
    const std::string refusal = layout_refusal(*operand, layout);
    if (!refusal.empty()) return refusal;
  }
  const bool growing = grows(request.inputs[1], prim.k_layout) ||
                       grows(request.inputs[2], prim.v_layout);
  return growing ? "a growing past" : "";
}

std::optional<Selection> by_library(const Attention& prim, const SelectRequest& request,
                                    Dnn& library, std::string& refusal) {
  const auto &q = request.inputs[0], &k = request.inputs[1], &v = request.inputs[2];
  const auto heads = [](const TensorDesc& t, HeadLayout layout) {
    return t.shape[layout == HeadLayout::bhsd ? 1 : 2];
  };
  const auto rows = [](const TensorDesc& t, HeadLayout layout) {
    return t.shape[layout == HeadLayout::bhsd ? 2 : 1];
  };
  DnnAttention a;
  a.dtype = q.dtype, a.batch = q.shape[0];
  a.heads = heads(q, prim.q_layout), a.kv_heads = heads(k, prim.k_layout);
  a.queries = rows(q, prim.q_layout), a.keys = rows(k, prim.k_layout);
  a.size = q.shape[3], a.value_size = v.shape[3], a.causal = prim.causal;
  a.q_strides = head_strides(q, prim.q_layout);
  a.k_strides = head_strides(k, prim.k_layout);
  a.v_strides = head_strides(v, prim.v_layout);
  a.y_strides = head_strides(request.outputs[0], prim.y_layout);
  auto body = std::make_shared<DnnAttentionBody>();
  body->attention = library.attention(a, refusal);
  if (!body->attention) return std::nullopt;
  body->library = &library;
  body->scale = float(prim.scale);
  body->result = request.inputs.size();
  body->causal = prim.causal;
  Selection selection;
  selection.workspace = Dnn::workspace(*body->attention);
  selection.rung = "cudnn";
  selection.reason = "engine " + std::to_string(body->attention->plan->engine);
  selection.steps.push_back({StepKind::dnn, std::move(body)});
  return selection;
}

}  // namespace

Selection select_attention(const Attention& prim, const SelectRequest& request,
                           const Tools& tools) {
  std::string refusal = refusal_of(prim, request);
  const bool asked = request.force.empty() || request.force.starts_with("cudnn");
  if (asked && refusal.empty()) {
    if (Dnn* library = tools.libraries ? tools.libraries->dnn(refusal) : nullptr) {
      if (auto found = by_library(prim, request, *library, refusal)) return std::move(*found);
    } else {
      check_not_forced(request.force, "cudnn", refusal);
    }
  }
  log_fallback(tools.options.log_fallback, "Attention", refusal);
  Selection selection = select_attention_kernel(prim, request, tools);
  selection.reason = refusal + (selection.reason.empty() ? "" : "; " + selection.reason);
  return selection;
}

}  // namespace rlx::cuda
