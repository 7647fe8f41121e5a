// Quantised weights as kernels see them, and as floats in memory for ordinary products.
#include "core/packed.h"
#include "cuda/select/matmul_dequant.h"
#include "plan/compose.h"
#include "plan/quantised.h"

namespace rlx::cuda {
namespace {

using plan::Place;

constexpr size_t weights_operand = 1, zeros_operand = 3, scales_operand = 4;

}  // namespace

WeightsOperand::WeightsOperand(const MatMul& prim, const SelectRequest& request)
    : type_(prim.b_type), quantised_(prim.b_type != DType::none) {
  const TensorDesc &a = request.inputs[0], &b = request.inputs[weights_operand];
  const size_t rank = b.shape.size();
  if (!quantised_) {
    for (size_t i = 0; i + 2 < rank; ++i) matrices_ *= b.shape[i];
    type_ = b.dtype;
    params_.n = b.shape[rank - 2];
    params_.k = a.shape[a.shape.size() - 1];
    params_.row = b.shape[rank - 1] * int64_t(size_of(type_));
    params_.matrix = params_.n * params_.row;
    return;
  }
  const plan::QuantisedSizes sizes = plan::quantised_sizes(prim, request);
  matrices_ = sizes.matrices;
  params_.n = sizes.n, params_.k = sizes.k;
  params_.row = sizes.row_bytes, params_.matrix = sizes.matrix_bytes();
  params_.block_k = prim.block_k, params_.block_n = prim.block_n;
  params_.scale_row = sizes.scale_row, params_.scale_matrix = sizes.scale_matrix;
  zeros_ = sizes.zeros;
  params_.zero_step = zeros_ && !sizes.one_zero;
  scale_type_ = storage_name(request.inputs[scales_operand].dtype);
  if (zeros_) zero_type_ = storage_name(request.inputs[zeros_operand].dtype);
}

int WeightsOperand::run(int most) const {
  const int bits = bits_of(type_);
  int run = std::min(most, 128 / bits);
  while (run * bits > 8 && params_.row % (run * bits / 8) != 0) run /= 2;
  return run;
}

std::vector<std::string> WeightsOperand::defines(int run) const {
  const bool even = params_.block_k % run == 0 || params_.block_k >= params_.k;
  return {define("RLX_B", storage_name(type_)), define("RLX_SCALE", scale_type_),
          define("RLX_ZERO", zero_type_),       define("RLX_QUANTISED", quantised_),
          define("RLX_ZEROS", zeros_),          define("RLX_EVEN", even),
          define("RLX_RUN", run)};
}

namespace {

// Operands as the product has them; the floats are operand `result`.
SelectedStep dequantise(const WeightsOperand& weights, const Tools& tools, DType type,
                        size_t result) {
  const int run = weights.run(8);
  LaunchBuilder<params::Dequantise> launch;
  weights.bind(launch);
  launch.params.matrices = weights.matrices();
  launch.bind(launch.params.y, Source::operand(result));
  KernelSpec kernel{"kernels/dequantise.cu", "dequantise", weights.defines(run), {}};
  const params::Quantised& q = launch.params.b;
  kernel.defines.push_back(define("RLX_T", storage_name(type)));
  kernel.defines.push_back(define("RLX_ALIGNED", q.k % run == 0));
  const int64_t runs = weights.matrices() * q.n * ceil_div(q.k, run);
  return launch.finish(tools.jit.get(kernel), walk_of(tools, runs));
}

}  // namespace

Selection matmul_dequantised(const MatMul& prim, const SelectRequest& request, const Tools& tools,
                             const WeightsOperand& weights) {
  const params::Quantised& q = weights.params();
  const DType type = request.inputs[0].dtype;
  std::vector<TensorDesc> inputs(request.inputs.begin(), request.inputs.end());
  TensorDesc& b = inputs[weights_operand];
  b.dtype = type, b.constant = nullptr;
  b.shape[b.shape.size() - 1] = q.k;
  b.strides = Dims(b.shape.size(), 1);
  for (size_t i = b.shape.size(); i-- > 1;) b.strides[i - 1] = b.strides[i] * b.shape[i];
  inputs[zeros_operand] = inputs[scales_operand] = TensorDesc{};
  MatMul plain = prim;
  plain.b_type = DType::none;
  const Prim product = plain;
  const SelectRequest inner{product,         inputs,        request.outputs, request.numbers,
                            request.threads, request.force, request.packs};
  plan::Composer composer;
  const Place floats = composer.reserve(b.bytes());
  const size_t count = request.inputs.size() + request.outputs.size();
  std::vector<Place> first, second;
  for (size_t i = 0; i < count; ++i) {
    first.push_back(Place::operand(i));
    second.push_back(i == weights_operand ? floats
                     : i == zeros_operand || i == scales_operand ? Place::absent()
                                                                 : Place::operand(i));
  }
  first.push_back(floats);
  composer.add(one_step("", dequantise(weights, tools, type, count)), std::move(first));
  Selection whole = select_matmul(std::get<MatMul>(product), inner, tools);
  const std::string rung = "dequantised, " + whole.rung, reason = whole.reason;
  composer.add(std::move(whole), std::move(second));
  return composer.finish(rung, "weights as floats, once each run" +
                                   (reason.empty() ? "" : "; " + reason));
}

}  // namespace rlx::cuda
