// LSTM, GRU and RNN: one launch that walks the steps of the whole layer.
#include <cctype>
#include <string_view>

#include "cuda/select/fallback.h"
#include "cuda/select/parts.h"
#include "cuda/select/recurrent.h"
#include "kernels/params/recurrent.h"

namespace rlx::cuda {
namespace {

using params::GateFunction;

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
void read_gates(const Recurrent& prim, params::Recurrent& p) {
  const bool lstm = prim.kind == RecurrentKind::lstm, rnn = prim.kind == RecurrentKind::rnn;
  const size_t each = lstm ? 3 : rnn ? 1 : 2, wanted = each * size_t(p.directions);
  std::vector<std::string> names = prim.activations;
  for (int d = 0; prim.activations.empty() && d < p.directions; ++d) {
    if (!rnn) names.push_back("Sigmoid");
    for (size_t i = 0; i < std::max<size_t>(each - 1, 1); ++i) names.push_back("Tanh");
  }
  if (names.size() < wanted) {
    throw Error(ErrorKind::model, "too few activations of a recurrent layer")
        .expected_got(std::to_string(wanted), std::to_string(names.size()));
  }
  size_t alphas = 0, betas = 0;
  for (size_t i = 0; i < wanted; ++i) {
    const FunctionRow& row = function_named(names[i]);
    params::Gate& gate = p.gates[i / each][i % each];
    gate = {row.function, row.alpha, row.beta};
    if (row.uses >= 1 && alphas < prim.activation_alpha.size()) {
      gate.alpha = prim.activation_alpha[alphas++];
    }
    if (row.uses >= 2 && betas < prim.activation_beta.size()) {
      gate.beta = prim.activation_beta[betas++];
    }
  }
}

void expect(const SelectRequest& request, size_t input, const Dims& shape, const char* name) {
  if (input >= request.inputs.size()) return;
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

void check_shapes(const params::Recurrent& p, int64_t gates, const SelectRequest& request) {
  const int64_t d = p.directions, n = p.hidden, all = gates * n;
  const Dims state = p.batchwise ? Dims{p.batch, d, n} : Dims{d, p.batch, n};
  expect(request, 1, {d, all, p.input}, "W");
  expect(request, 2, {d, all, n}, "R");
  expect(request, 3, {d, 2 * all}, "B");
  expect(request, 4, {p.batch}, "sequence_lens");
  expect(request, 5, state, "initial_h");
  expect(request, 6, state, "initial_c");
  expect(request, 7, {d, 3 * n}, "P");
}

void check_type(DType type) {
  const DType taken[] = {DType::float16, DType::bfloat16, DType::float32, DType::float64};
  if (std::ranges::count(taken, type)) return;
  throw Error(ErrorKind::unsupported, std::string("recurrent layers take no ") + name_of(type));
}

// Of 8-bit weights: w's scale and zero point behind the eight operands of every layer, then r's.
void bind_scales(LaunchBuilder<params::Recurrent>& launch, const SelectRequest& request) {
  params::Recurrent& p = launch.params;
  for (int k = 0; k < 2; ++k) {
    const size_t scale = size_t(8 + 2 * k), zero = scale + 1;
    launch.bind(p.scale[k], Source::operand(scale));
    launch.bind(p.zero[k], Source::operand(zero));
    p.scale_each[k] = request.inputs[scale].count() > p.directions;
    p.zero_each[k] = request.inputs[zero].count() > p.directions;
  }
}

constexpr int64_t gate_counts[] = {4, 3, 1};  // by kind

// Sizes and activations, checked.
void describe(const Recurrent& prim, const SelectRequest& request, params::Recurrent& p) {
  const TensorDesc& x = request.inputs[0];
  check_type(x.dtype);
  p.steps = x.shape[prim.batchwise ? 1 : 0];
  p.batch = x.shape[prim.batchwise ? 0 : 1];
  p.input = x.shape[2];
  p.hidden = prim.hidden_size;
  p.directions = prim.direction == Direction::bidirectional ? 2 : 1;
  p.reverse = prim.direction == Direction::reverse;
  p.clip = prim.clip;
  p.input_forget = prim.input_forget;
  p.batchwise = prim.batchwise;
  check_shapes(p, gate_counts[size_t(prim.kind)], request);
  read_gates(prim, p);
}

Selection by_kernel(const Recurrent& prim, const SelectRequest& request, const Tools& tools,
                    LaunchBuilder<params::Recurrent> launch) {
  params::Recurrent& p = launch.params;
  const TensorDesc& x = request.inputs[0];
  const int64_t gates = gate_counts[size_t(prim.kind)];
  const auto given = [&](size_t k) {
    const size_t inputs = request.inputs.size();
    return k < inputs ? request.inputs[k].dtype != DType::none
                      : k - inputs < request.outputs.size() &&
                            request.outputs[k - inputs].dtype != DType::none;
  };
  const auto bind = [&](auto*& field, size_t operand) {
    if (given(operand)) launch.bind(field, Source::operand(operand));
  };
  const void** inputs[] = {&p.x, &p.w, &p.r, &p.bias, nullptr, &p.initial_h, &p.initial_c,
                           &p.peephole};
  for (size_t k = 0; k < 8; ++k) {
    if (k == 4) bind(p.lengths, k);
    else bind(*inputs[k], k);
  }
  const bool bytes = size_of(request.inputs[1].dtype) == 1;
  if (bytes) bind_scales(launch, request);
  bind(p.y, request.inputs.size());
  bind(p.y_h, request.inputs.size() + 1);
  bind(p.y_c, request.inputs.size() + 2);
  launch.bind(p.state, Source::workspace());
  launch.bind(p.fault, Source::fault());
  const int block = p.hidden <= 64 ? 256 : 1024;
  KernelSpec kernel{"kernels/recurrent.cu", "recurrent",
                    {define("RLX_T", storage_name(x.dtype)),
                     define("RLX_W", storage_name(request.inputs[1].dtype)),
                     define("RLX_KIND", int64_t(prim.kind)),
                     define("RLX_LINEAR_BEFORE_RESET", prim.linear_before_reset),
                     define("RLX_BLOCK", block)},
                    {}};
  const int64_t rows = p.batch * p.directions;
  size_t workspace = size_t(rows * (gates + 4) * p.hidden) * size_of(compute_type(x.dtype));
  if (bytes) workspace += size_t(rows * (p.input + p.hidden)) * sizeof(int16_t);  // levels
  // What the state is rounded by spans the batch.
  return one_step(bytes ? "a block for each direction" : "a block for each row",
                  launch.finish(tools.jit.get(kernel), blocks_of(bytes ? p.directions : rows,
                                                                 block)), workspace);
}

}  // namespace

Selection select_recurrent(const Recurrent& prim, const SelectRequest& request,
                           const Tools& tools) {
  LaunchBuilder<params::Recurrent> launch;
  describe(prim, request, launch.params);
  if (launch.params.batch * launch.params.hidden == 0) return {};
  std::string refusal;
  if (auto found = select_recurrent_library(prim, request, tools, refusal)) {
    return std::move(*found);
  }
  log_fallback(tools.options.log_fallback, "Recurrent", refusal);
  Selection kernel = by_kernel(prim, request, tools, launch);
  kernel.reason = refusal;
  return kernel;
}

}  // namespace rlx::cuda
