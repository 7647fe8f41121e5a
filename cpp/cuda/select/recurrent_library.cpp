// Recurrent layers by cuDNN, and why not.
#include <algorithm>
#include <cctype>

#include "cuda/libs/dnn_rnn.h"
#include "cuda/libs/libraries.h"
#include "cuda/select/fallback.h"
#include "cuda/select/parts.h"
#include "cuda/select/recurrent.h"
#include "kernels/params/move.h"

namespace rlx::cuda {
namespace {

enum : size_t { of_x, of_w, of_r, of_b, of_lengths, of_h, of_c, of_p, inputs };
constexpr size_t alignment = 256;

struct RnnBody final : StepBody {
  DnnRnn* library = nullptr;
  std::shared_ptr<const DnnRnnLayer> layer;
  std::shared_ptr<const void> weights;
  int places[5] = {-1, -1, -1, -1, -1};  // among the operands: h, c, y, y_h, y_c; or absent
  bool own_y = false;         // y lies in front of the library's workspace
  size_t y_bytes = 0;

  void run(const RunArgs& args) const override {
    const uintptr_t misplaced = reinterpret_cast<uintptr_t>(args.workspace) % alignment;
    auto* memory = static_cast<std::byte*>(args.workspace) +
                   (misplaced ? alignment - misplaced : 0);
    const auto at = [&](int k) { return places[k] < 0 ? nullptr : args.operands[places[k]]; };
    library->run(*layer,
                 {args.operands[of_x], at(0), at(1), weights.get(), own_y ? memory : at(2), at(3),
                  at(4), memory + y_bytes},
                 static_cast<Stream>(args.stream));
  }
};

bool named(const std::vector<std::string>& given, size_t from,
           std::initializer_list<std::string_view> wanted) {
  const auto same = [](char a, char b) { return std::tolower(a) == std::tolower(b); };
  for (const std::string_view name : wanted) {
    if (from >= given.size() || !std::ranges::equal(given[from++], name, same)) return false;
  }
  return true;
}

class Library {
 public:
  Library(const Recurrent& prim, const SelectRequest& request, const Tools& tools)
      : prim_(prim), request_(request), tools_(tools) {}

  // Why cuDNN has no such layer; empty when it may have.
  std::string refusal() {
    const TensorDesc& x = request_.inputs[of_x];
    if (x.dtype != DType::float32 && x.dtype != DType::float16) {
      return std::string("cuDNN is not asked for ") + name_of(x.dtype);
    }
    if (request_.inputs[of_w].dtype != x.dtype) return "the weights have another type";
    if (prim_.direction == Direction::reverse) return "cuDNN has no layer that runs backwards only";
    if (prim_.clip != 0) return "cuDNN clips other values";
    if (prim_.input_forget) return "cuDNN couples no gates";
    if (given(of_p)) return "cuDNN has no peepholes";
    if (prim_.kind == RecurrentKind::gru && !prim_.linear_before_reset) {
      return "cuDNN resets behind the product";
    }
    if (prim_.batchwise && prim_.direction == Direction::bidirectional) {
      return "the states of both directions lie by rows";
    }
    if (!usual_activations()) return "cuDNN has other activations";
    for (const size_t k : {of_w, of_r, of_b}) {
      if (given(k) && !request_.inputs[k].constant) return "the weights are computed";
    }
    return lengths();
  }

  std::optional<Selection> select(DnnRnn& library, std::string& refusal) {
    const DnnRnnShape shape = shape_of();
    auto body = std::make_shared<RnnBody>();
    body->library = &library;
    body->layer = library.layer(shape, refusal);
    if (!body->layer) return std::nullopt;
    body->weights = pack(library, *body->layer);
    for (const size_t k : {of_h, of_c}) {
      if (given(k)) body->places[k - of_h] = int(k);
    }
    for (size_t k = 0; k < request_.outputs.size(); ++k) {
      const bool there = request_.outputs[k].dtype != DType::none;
      if (there) body->places[2 + k] = int(request_.inputs.size() + k);
    }
    const bool wanted = body->places[2] >= 0;
    body->own_y = !wanted || shape.bidirectional;
    const auto size = int64_t(size_of(shape.dtype));
    const int64_t bytes = shape.steps * shape.batch * shape.directions() * shape.hidden * size;
    if (body->own_y) body->y_bytes = (size_t(bytes) + alignment - 1) / alignment * alignment;
    Selection selection;
    selection.rung = "cudnn";
    selection.reason = "weights packed once";
    selection.unread = 1u << of_w | 1u << of_r | (given(of_b) ? 1u << of_b : 0u);
    selection.workspace = body->y_bytes + body->layer->workspace + alignment;
    selection.steps.push_back({StepKind::dnn, std::move(body)});
    if (wanted && shape.bidirectional) selection.steps.push_back(exchange(shape, size));
    return selection;
  }

 private:
  bool given(size_t k) const {
    return k < request_.inputs.size() && request_.inputs[k].dtype != DType::none;
  }

  bool usual_activations() {
    const std::vector<std::string>& names = prim_.activations;
    if (names.empty()) return true;
    const size_t directions = prim_.direction == Direction::bidirectional ? 2 : 1;
    relu_ = prim_.kind == RecurrentKind::rnn && named(names, 0, {"Relu"});
    for (size_t d = 0; d < directions; ++d) {
      const bool usual = prim_.kind == RecurrentKind::lstm
                             ? named(names, 3 * d, {"Sigmoid", "Tanh", "Tanh"})
                         : prim_.kind == RecurrentKind::gru
                             ? named(names, 2 * d, {"Sigmoid", "Tanh"})
                             : named(names, d, {relu_ ? "Relu" : "Tanh"});
      if (!usual) return false;
    }
    return true;
  }

  // cuDNN takes the lengths of rows from the host, before the run.
  std::string lengths() {
    if (!given(of_lengths)) return "";
    const Constant* constant = request_.inputs[of_lengths].constant;
    if (!constant) return "the lengths of rows are known on the device only";
    const int64_t steps = request_.inputs[of_x].shape[prim_.batchwise ? 1 : 0];
    lengths_.resize(size_t(request_.inputs[of_lengths].count()));
    std::memcpy(lengths_.data(), constant->data, lengths_.size() * sizeof(int32_t));
    const bool fit = std::ranges::all_of(lengths_, [&](int32_t n) { return n > 0 && n <= steps; });
    return fit ? "" : "a row has no steps, or too many";
  }

  DnnRnnShape shape_of() const {
    const TensorDesc& x = request_.inputs[of_x];
    DnnRnnShape s;
    s.kind = prim_.kind, s.dtype = x.dtype, s.relu = relu_;
    s.tf32 = tools_.options.tf32, s.bias = given(of_b);
    s.bidirectional = prim_.direction == Direction::bidirectional;
    s.batch_major = prim_.batchwise;
    s.steps = x.shape[prim_.batchwise ? 1 : 0], s.batch = x.shape[prim_.batchwise ? 0 : 1];
    s.input = x.shape[2], s.hidden = prim_.hidden_size;
    s.lengths = lengths_;
    return s;
  }

  std::shared_ptr<const void> pack(DnnRnn& library, const DnnRnnLayer& layer) const {
    const auto data = [&](size_t k) {
      return given(k) ? request_.inputs[k].constant->data : nullptr;
    };
    std::string format = "cudnn rnn " + std::to_string(int(prim_.kind));
    for (const size_t k : {of_r, of_b}) {
      format += " " + std::to_string(reinterpret_cast<uintptr_t>(data(k)));
    }
    const Constant& w = *request_.inputs[of_w].constant;
    const size_t bytes = layer.weight_bytes;
    if (auto found = tools_.weights->find(tools_.user, w, format, bytes)) return found;
    // Filled now: the layer and the library are not another thread's to use.
    const std::shared_ptr<std::byte[]> host(new std::byte[bytes]);
    library.pack(layer, data(of_w), data(of_r), data(of_b), host.get());
    const auto fill = [host](void* to, size_t offset, size_t count) {
      std::memcpy(to, host.get() + offset, count);
    };
    return tools_.weights->pack(tools_.user, w, format, bytes, 1, fill);
  }

  // cuDNN's [steps, batch, directions, hidden] as ONNX's y, whose directions come second.
  SelectedStep exchange(const DnnRnnShape& s, int64_t size) const {
    const int word = fitting_vector(16, s.hidden * size);
    const int64_t n = s.hidden * size / word, d = s.directions();
    LaunchBuilder<params::Move> launch;
    params::Move& p = launch.params;
    const int64_t extents[] = {s.steps, d, s.batch, n};
    const int64_t from[] = {s.batch * d * n, n, d * n, 1};
    p.count = 1;
    for (size_t k = 4; k-- > 0; p.count *= extents[k]) {
      p.extents[k] = params::Divisor(extents[k]);
      p.from_strides[k] = from[k], p.to_strides[k] = p.count;
    }
    launch.bind(p.x, Source::workspace());
    launch.bind(p.y, Source::operand(request_.inputs.size()));
    KernelSpec kernel{"kernels/move.cu", "move",
                      {define("RLX_WORD", integer_name(size_t(word))),
                       define("RLX_INDEX", index_name(narrow_index(p.count))),
                       define("RLX_FORM", 0), define("RLX_AXES", 4)},
                      {}};
    return launch.finish(tools_.jit.get(kernel), walk_of(tools_, p.count));
  }

  const Recurrent& prim_;
  const SelectRequest& request_;
  const Tools& tools_;
  bool relu_ = false;
  std::vector<int32_t> lengths_;
};

}  // namespace

std::optional<Selection> select_recurrent_library(const Recurrent& prim,
                                                  const SelectRequest& request, const Tools& tools,
                                                  std::string& refusal) {
  if (!request.force.empty() && !request.force.starts_with("cudnn")) {
    refusal = "rung '" + std::string(request.force) + "' was asked for";
    return std::nullopt;
  }
  Library by_library(prim, request, tools);
  refusal = by_library.refusal();
  if (!refusal.empty()) return std::nullopt;
  DnnRnn* library = tools.libraries ? tools.libraries->dnn_rnn(refusal) : nullptr;
  if (!library) {
    check_not_forced(request.force, "cudnn", refusal);
    return std::nullopt;
  }
  return by_library.select(*library, refusal);
}

}  // namespace rlx::cuda
