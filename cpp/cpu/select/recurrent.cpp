// LSTM, GRU and RNN: reads the activations, packs constant weights, one step for the whole layer.
#include "cpu/kernels/recurrent.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "cpu/kernels/widen.h"
#include "cpu/select/compose.h"
#include "cpu/select/select.h"

namespace rlx::cpu {
namespace {

struct FunctionRow {  // with the defaults of the operator of that name; uses: how many of them
  std::string_view name;
  GateFunction function;
  int uses;
  double alpha, beta;
};

constexpr FunctionRow functions[] = {
    {"Sigmoid", GateFunction::sigmoid, 0, 0, 0},
    {"Tanh", GateFunction::tanh, 0, 0, 0},
    {"Relu", GateFunction::relu, 0, 0, 0},
    {"Affine", GateFunction::affine, 2, 1, 0},
    {"LeakyRelu", GateFunction::leaky_relu, 1, 0.01, 0},
    {"ThresholdedRelu", GateFunction::thresholded_relu, 1, 1, 0},
    {"ScaledTanh", GateFunction::scaled_tanh, 2, 1, 1},
    {"HardSigmoid", GateFunction::hard_sigmoid, 2, 0.2, 0.5},
    {"Elu", GateFunction::elu, 1, 1, 0},
    {"Softsign", GateFunction::softsign, 0, 0, 0},
    {"Softplus", GateFunction::softplus, 0, 0, 0},
};

const FunctionRow& function_named(const std::string& name) {
  const auto same = [](char a, char b) { return std::tolower(a) == std::tolower(b); };
  for (const FunctionRow& row : functions) {
    if (std::ranges::equal(row.name, name, same)) return row;
  }
  throw Error(ErrorKind::unsupported, "unknown activation of a recurrent layer: " + name);
}

// Activations in order take what they use of the lists of alphas and betas.
void read_gates(const Recurrent& prim, RecurrentShape& shape) {
  const bool lstm = prim.kind == RecurrentKind::lstm, rnn = prim.kind == RecurrentKind::rnn;
  const size_t each = lstm ? 3 : rnn ? 1 : 2;
  std::vector<std::string> names = prim.activations;
  if (names.empty()) {
    for (int d = 0; d < shape.directions; ++d) {
      if (!rnn) names.push_back("Sigmoid");
      for (size_t i = 0; i < std::max<size_t>(each - 1, 1); ++i) names.push_back("Tanh");
    }
  }
  if (names.size() < each * size_t(shape.directions)) {
    throw Error(ErrorKind::model, "too few activations of a recurrent layer")
        .expected_got(std::to_string(each * size_t(shape.directions)),
                      std::to_string(names.size()));
  }
  size_t alphas = 0, betas = 0;
  for (size_t i = 0; i < each * size_t(shape.directions); ++i) {
    const FunctionRow& row = function_named(names[i]);
    Gate& gate = shape.gates[i / each][i % each];
    gate = {row.function, row.alpha, row.beta};
    if (row.uses >= 1 && alphas < prim.activation_alpha.size()) {
      gate.alpha = prim.activation_alpha[alphas++];
    }
    if (row.uses >= 2 && betas < prim.activation_beta.size()) {
      gate.beta = prim.activation_beta[betas++];
    }
  }
}

constexpr size_t inputs = 12;

// Float copies of 16-bit operands: the layer computes in float32 and is rounded at its outputs.
class Widened {
 public:
  Widened() = default;
  Widened(DType type, const SelectRequest& request) : type_(type) {
    for (size_t i = 0; i < request.inputs.size() + request.outputs.size(); ++i) {
      const bool input = i < request.inputs.size();
      const TensorDesc& desc = input ? request.inputs[i] : request.outputs[i - inputs];
      const bool copied = desc.dtype == type && i != 1 && i != 2;  // weights are packed instead
      parts_.push_back({bytes_, copied ? desc.count() : 0});
      bytes_ += aligned(size_t(parts_.back().count) * sizeof(float));
    }
  }
  size_t bytes() const { return bytes_; }

  // Replaces the operands by their copies, and fills those of inputs.
  void enter(void** operands, std::byte* at, int threads) const {
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i].count == 0 || !operands[i]) continue;
      auto* copy = reinterpret_cast<float*>(at + parts_[i].offset);
      if (i < inputs) widen(type_, operands[i], copy, parts_[i].count, threads);
      operands[i] = copy;
    }
  }
  void leave(void* const* operands, const std::byte* at, int threads) const {
    for (size_t i = inputs; i < parts_.size(); ++i) {
      if (parts_[i].count == 0 || !operands[i]) continue;
      const auto* copy = reinterpret_cast<const float*>(at + parts_[i].offset);
      narrow(type_, copy, operands[i], parts_[i].count, threads);
    }
  }

 private:
  struct Part {
    size_t offset;
    int64_t count;
  };

  DType type_ = DType::none;
  std::vector<Part> parts_;
  size_t bytes_ = 0;
};

struct RecurrentBody : StepBody {
  RecurrentShape shape;
  WeightScales w_scales, r_scales;     // whether there are many; no pointers
  std::shared_ptr<const void> packed;  // null: packed on each run, at the workspace's start
  size_t packed_bytes = 0;
  Widened widened;                     // of nothing for the types that the layer computes in

  void run(const RunArgs& run) const override {
    std::array<void*, inputs + 3> o;
    std::copy_n(run.operands, o.size(), o.begin());
    auto* workspace = static_cast<std::byte*>(run.workspace);
    std::byte* layer = workspace + widened.bytes();
    widened.enter(o.data(), workspace, run.threads);
    RecurrentArgs args{o[0], o[1], o[2], o[3], static_cast<const int32_t*>(o[4]), o[5], o[6],
                       o[7], w_scales, r_scales, o[inputs], o[inputs + 1], o[inputs + 2],
                       packed.get(), layer, run.threads};
    if (shape.rounded()) {
      args.w_scales.scale = static_cast<const float*>(o[8]);
      args.w_scales.zero = o[9];
      args.r_scales.scale = static_cast<const float*>(o[10]);
      args.r_scales.zero = o[11];
    }
    check_lengths(args.sequence_lens);
    if (!packed) {
      recurrent_pack(shape, args.w, args.r, layer, run.threads);
      args.packed = layer;
      args.workspace = layer + packed_bytes;
    }
    recurrent(shape, args);
    widened.leave(run.operands, workspace, run.threads);
  }

  void check_lengths(const int32_t* lengths) const {
    for (int64_t b = 0; lengths && b < shape.batch; ++b) {
      if (lengths[b] >= 0 && lengths[b] <= shape.steps) continue;
      throw Error(ErrorKind::input, "a sequence length of a recurrent layer is out of range")
          .expected_got("0 to " + std::to_string(shape.steps), std::to_string(lengths[b]));
    }
  }
};

void expect(const SelectRequest& request, size_t input, const Dims& shape, const char* name) {
  const TensorDesc& desc = request.inputs[input];
  if (desc.dtype == DType::none || desc.shape == shape) return;
  const auto text = [](const Dims& dims) {
    std::string s;
    for (int64_t d : dims) s += (s.empty() ? "[" : ", ") + std::to_string(d);
    return s + "]";
  };
  throw Error(ErrorKind::model, std::string("wrong shape of a recurrent layer's ") + name)
      .expected_got(text(shape), text(desc.shape));
}

void check_shapes(const RecurrentShape& s, const SelectRequest& request) {
  const int64_t d = s.directions, n = s.hidden, all = s.gate_count() * n;
  const Dims state = s.batchwise ? Dims{s.batch, d, n} : Dims{d, s.batch, n};
  expect(request, 1, {d, all, s.input}, "W");
  expect(request, 2, {d, all, n}, "R");
  expect(request, 3, {d, 2 * all}, "B");
  expect(request, 4, {s.batch}, "sequence_lens");
  expect(request, 5, state, "initial_h");
  expect(request, 6, state, "initial_c");
  expect(request, 7, {d, 3 * n}, "P");
  if (!s.rounded()) return;
  for (size_t k = 8; k < inputs; ++k) {
    const Dims& dims = request.inputs[k].shape;
    const bool one = dims.size() == 2 && dims[1] == 1;
    expect(request, k, {d, one ? 1 : all}, "scales and zero points");
  }
}

RecurrentShape shape_of(const Recurrent& prim, const SelectRequest& request) {
  const TensorDesc& x = request.inputs[0];
  RecurrentShape s;
  s.kind = prim.kind;
  s.dtype = size_of(x.dtype) == 2 ? DType::float32 : x.dtype;
  s.weights = request.inputs[1].dtype;
  s.steps = x.shape[prim.batchwise ? 1 : 0];
  s.batch = x.shape[prim.batchwise ? 0 : 1];
  s.input = x.shape[2];
  s.hidden = prim.hidden_size;
  s.directions = prim.direction == Direction::bidirectional ? 2 : 1;
  s.reverse = prim.direction == Direction::reverse;
  s.clip = prim.clip;
  s.input_forget = prim.input_forget;
  s.linear_before_reset = prim.linear_before_reset;
  s.batchwise = prim.batchwise;
  check_shapes(s, request);
  read_gates(prim, s);
  return s;
}

// 8-bit weights come with scales and zero points, and make the layer round x and its state.
void check_rounded(const RecurrentShape& s, const SelectRequest& request) {
  const bool scaled = std::all_of(request.inputs.begin() + 8, request.inputs.end(),
                                  [](const TensorDesc& d) { return d.dtype != DType::none; });
  if (s.kind == RecurrentKind::lstm && s.dtype == DType::float32 && scaled &&
      request.inputs[1].dtype == request.inputs[2].dtype) {
    return;
  }
  throw Error(ErrorKind::unsupported,
              "8-bit weights are those of an LSTM of float32 with scales and zero points");
}

}  // namespace

Selection select_recurrent(const Recurrent& prim, const SelectRequest& request) {
  const TensorDesc &x = request.inputs[0], &w = request.inputs[1], &r = request.inputs[2];
  const bool half = is_half(x.dtype);
  if (!half && x.dtype != DType::float32 && x.dtype != DType::float64) {
    throw Error(ErrorKind::unsupported,
                std::string("recurrent layers take no ") + name_of(x.dtype));
  }
  auto body = std::make_shared<RecurrentBody>();
  body->shape = shape_of(prim, request);
  if (body->shape.rounded()) check_rounded(body->shape, request);
  const auto many = [&](size_t k) { return request.inputs[k].count() > body->shape.directions; };
  body->w_scales.scale_each = many(8), body->w_scales.zero_each = many(9);
  body->r_scales.scale_each = many(10), body->r_scales.zero_each = many(11);
  const size_t bytes = recurrent_packed_bytes(body->shape);
  body->packed_bytes = (bytes + 63) / 64 * 64;
  Selection selection;
  if (half) body->widened = Widened(x.dtype, request);
  selection.workspace =
      body->widened.bytes() + recurrent_workspace(body->shape, request.threads);
  if (w.constant && r.constant) {
    const std::string format = "recurrent " + std::to_string(int(prim.kind)) +
                               std::to_string(body->shape.split()) + r.constant->source;
    body->packed = request.packs.get(*w.constant, format, bytes, [&](void* to) {
      recurrent_pack(body->shape, w.constant->data, r.constant->data, to, request.threads);
    });
    selection.reason = "weights packed once";
  } else {
    selection.workspace += body->packed_bytes;
    selection.reason = "weights are computed: packed on each run";
  }
  selection.rung = body->shape.rounded() ? "packed gemm s8" : "packed gemm";
  selection.steps.push_back({StepKind::launch, std::move(body)});
  return selection;
}

}  // namespace rlx::cpu
