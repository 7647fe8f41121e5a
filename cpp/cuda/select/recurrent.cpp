// LSTM, GRU and RNN by our kernels: one launch that walks all steps, or a launch for each.
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

bool has_bytes(const SelectRequest& request) { return size_of(request.inputs[1].dtype) == 1; }

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

// The operands, and what both kernels are compiled for.
void bind_operands(LaunchBuilder<params::Recurrent>& launch, const SelectRequest& request) {
  params::Recurrent& p = launch.params;
  const size_t inputs = request.inputs.size();
  const auto given = [&](size_t k) {
    return k < inputs ? request.inputs[k].dtype != DType::none
                      : k - inputs < request.outputs.size() &&
                            request.outputs[k - inputs].dtype != DType::none;
  };
  const auto bind = [&](auto*& field, size_t operand) {
    if (given(operand)) launch.bind(field, Source::operand(operand));
  };
  const void** fields[] = {&p.x, &p.w, &p.r, &p.bias, nullptr, &p.initial_h, &p.initial_c,
                           &p.peephole};
  for (size_t k = 0; k < 8; ++k) {
    if (k == 4) bind(p.lengths, k);
    else bind(*fields[k], k);
  }
  if (has_bytes(request)) bind_scales(launch, request);
  bind(p.y, inputs);
  bind(p.y_h, inputs + 1);
  bind(p.y_c, inputs + 2);
  launch.bind(p.state, Source::workspace());
  launch.bind(p.fault, Source::fault());
}

KernelSpec kernel_of(const std::string& name, const Recurrent& prim, const SelectRequest& request,
                     int block) {
  return {"kernels/" + name + ".cu", name,
          {define("RLX_T", storage_name(request.inputs[0].dtype)),
           define("RLX_W", storage_name(request.inputs[1].dtype)),
           define("RLX_KIND", int64_t(prim.kind)),
           define("RLX_LINEAR_BEFORE_RESET", prim.linear_before_reset),
           define("RLX_BLOCK", block)},
          {}};
}

size_t state_bytes(const params::Recurrent& p, int64_t gates, DType type) {
  return size_t(p.batch * p.directions * (gates + 4) * p.hidden) * size_of(compute_type(type));
}

Selection by_rows(const Recurrent& prim, const SelectRequest& request, const Tools& tools,
                  const LaunchBuilder<params::Recurrent>& launch) {
  const params::Recurrent& p = launch.params;
  const int64_t rows = p.batch * p.directions;
  const int block = p.hidden <= 64 ? 256 : 1024;
  size_t workspace = state_bytes(p, gate_counts[size_t(prim.kind)], request.inputs[0].dtype);
  const bool bytes = has_bytes(request);
  if (bytes) workspace += size_t(rows * (p.input + p.hidden)) * sizeof(int16_t);  // levels
  const KernelPtr kernel = tools.jit.get(kernel_of("recurrent", prim, request, block));
  // What the state is rounded by spans the batch.
  return one_step(bytes ? "a block for each direction" : "a block for each row",
                  launch.finish(kernel, blocks_of(bytes ? p.directions : rows, block)), workspace);
}

// Rows of the batch that a warp multiplies a weight with; integers are summed twice as often.
int tile_rows(const params::Recurrent& p, bool bytes) {
  int rows = 1;
  while (rows < p.batch && rows < (bytes ? 4 : 8)) rows *= 2;
  return rows;
}

// Levels of x and the state for the rows of a tile.
size_t levels_bytes(const params::Recurrent& p, int rows) {
  return size_t((rows * p.hidden + 7) / 8 * 8 + rows * p.input) * sizeof(int16_t);
}

// One block reads weights at some 40 GB/s: where that takes longer than a launch and the layer's
// latency in the whole card, about 4 us, a launch for each step is quicker.
bool has_many_weights(const Recurrent& prim, const SelectRequest& request,
                      const params::Recurrent& p) {
  constexpr int64_t least_bytes = 160 << 10;
  return gate_counts[size_t(prim.kind)] * p.hidden * (p.input + p.hidden) *
             int64_t(size_of(request.inputs[1].dtype)) >= least_bytes;
}

// Why such a layer is walked by one launch all the same; empty when it is not.
std::string limit_of_steps(const Recurrent& prim, const SelectRequest& request,
                           const params::Recurrent& p) {
  constexpr int64_t most_steps = 16 << 10;  // each is a node of recorded graphs
  constexpr size_t most_levels = 47 << 10;
  if (p.steps == 0) return "no steps";
  if (p.steps > most_steps) {
    return "too many steps for a launch each: above " + std::to_string(most_steps);
  }
  if (!has_bytes(request)) return "";
  if (prim.kind != RecurrentKind::lstm) return "only LSTMs of 8-bit weights go by steps";
  return levels_bytes(p, tile_rows(p, true)) > most_levels
             ? "rounded rows are too long for a block's shared memory" : "";
}

Selection by_steps(const Recurrent& prim, const SelectRequest& request, const Tools& tools,
                   const LaunchBuilder<params::Recurrent>& launch) {
  constexpr int block = 256, begin_block = 1024;
  enum { begin, products, candidate, rounded };  // RLX_FORM
  const params::Recurrent& p = launch.params;
  const bool bytes = has_bytes(request);
  const int rows = tile_rows(p, bytes);
  const int run = 16 / int(size_of(request.inputs[1].dtype));
  const auto kernel = [&](int form, int threads) {
    KernelSpec spec = kernel_of("recurrent_step", prim, request, threads);
    spec.defines.push_back(define("RLX_FORM", form));
    spec.defines.push_back(define("RLX_ROWS", rows));
    spec.defines.push_back(define("RLX_RUN_X", fitting_vector(run, p.input)));
    spec.defines.push_back(define("RLX_RUN_H", fitting_vector(run, p.hidden)));
    return tools.jit.get(spec);
  };
  const int64_t blocks = ceil_div(p.hidden, block / 32) * p.directions * ceil_div(p.batch, rows);
  const LaunchShape shape = blocks_of(blocks, block, bytes ? levels_bytes(p, rows) : 0);
  std::vector<KernelPtr> forms = {kernel(bytes ? rounded : products, block)};
  if (prim.kind == RecurrentKind::gru && !prim.linear_before_reset) {
    forms.push_back(kernel(candidate, block));
  }
  const int64_t states = p.batch * p.directions * p.hidden;
  Selection selection;
  selection.rung = "a launch for each step";
  selection.workspace = state_bytes(p, gate_counts[size_t(prim.kind)], request.inputs[0].dtype) +
                        2 * sizeof(float);  // by what x is rounded
  selection.steps.push_back(launch.finish(kernel(begin, begin_block),
                                          blocks_of(ceil_div(states, begin_block), begin_block)));
  selection.steps.push_back(launch.finish_rounds(forms, shape, p.step, p.steps));
  return selection;
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
  bind_operands(launch, request);
  const bool many = has_many_weights(prim, request, launch.params);
  const std::string limit = many ? limit_of_steps(prim, request, launch.params) : "";
  Selection kernel = many && limit.empty() ? by_steps(prim, request, tools, launch)
                                           : by_rows(prim, request, tools, launch);
  kernel.reason = refusal + (limit.empty() ? "" : "; " + limit);
  return kernel;
}

}  // namespace rlx::cuda
