// Products by quantised weights: constants become floats once, since reading stored bytes took 1.3
// times as long (1 x 4096 x 4096, 2 AVX2 threads); computed weights are read as they lie by few
// rows, and dequantised by each run for more.
#include "cpu/select/matmul_quantised.h"

#include <algorithm>
#include <memory>

#include "core/divide.h"
#include "core/packed.h"
#include "cpu/kernels/widen.h"
#include "cpu/select/compose.h"
#include "cpu/select/matmul_task.h"
#include "cpu/team.h"
#include "plan/quantised.h"

namespace rlx::cpu {
namespace {

constexpr size_t weights = 1, zeros = 3, scales = 4;  // operands of a product

int64_t matrices(const TensorDesc& b) {
  int64_t count = 1;
  for (size_t i = 0; i + 2 < b.shape.size(); ++i) count *= b.shape[i];
  return count;
}

void dequantise_all(const Quantised& q, const MatrixSteps& steps, int64_t count, float* to,
                    int threads) {
  for (int64_t i = 0; i < count; ++i, to += q.n * q.k) {
    const Quantised one = q.matrix(i, steps.codes, steps.scales);
    const int64_t grain = std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(q.k, 1));
    parallel_for(threads, q.n, grain, [&](int64_t begin, int64_t end) {
      dequantise(one, begin, end, to + begin * q.k, q.k);
    });
  }
}

// Gives what packs a constant b the floats that the quantised one stands for.
class FloatPacks final : public PackCache {
 public:
  FloatPacks(PackCache& inner, const Quantised& q, const MatrixSteps& steps,
             const SelectRequest& request, int64_t count)
      : inner_(inner), q_(q), steps_(steps), request_(request), count_(count) {
    floats.bytes = size_t(count * q.n * q.k) * sizeof(float);
  }
  std::shared_ptr<const void> get(const Constant& constant, const std::string& format,
                                  size_t bytes, const std::function<void(void*)>& fill) override {
    if (&constant != &floats) return inner_.get(constant, format, bytes, fill);
    used = true;
    const auto fill_floats = [&](void* to) {
      const std::unique_ptr<float[]> made(new float[floats.bytes / sizeof(float)]);
      dequantise_all(q_, steps_, count_, made.get(), request_.threads);
      floats.data = made.get();
      fill(to);
      floats.data = nullptr;
    };
    return inner_.get(*request_.inputs[weights].constant, quantised_source(request_) + format,
                      bytes, fill_floats);
  }
  Constant floats;  // stands for b
  bool used = false;

 private:
  PackCache& inner_;
  const Quantised& q_;
  const MatrixSteps steps_;
  const SelectRequest& request_;
  int64_t count_;
};

// Operands b, zero points, scales, then the floats.
struct DequantiseBody : StepBody {
  Quantised q;
  MatrixSteps steps;
  int64_t count = 0;
  void run(const RunArgs& args) const override {
    void* const* o = args.operands;
    void* const placed[] = {nullptr, o[0], nullptr, o[1], o[2]};
    dequantise_all(with_operands(q, placed), steps, count, static_cast<float*>(o[3]),
                   args.threads);
  }
};

struct GemvBody : StepBody {
  QuantisedGemv call;
  size_t product = 0;  // in the workspace, where it is rounded to a half type
  DType y_type = DType::float32;
  void run(const RunArgs& args) const override {
    QuantisedGemv now = call;
    now.b = with_operands(call.b, args.operands);
    now.a = args.operands[0];
    void* y = args.operands[matmul_operands];
    const bool half = y_type != DType::float32;
    auto* workspace = static_cast<std::byte*>(args.workspace);
    now.y = reinterpret_cast<float*>(half ? workspace + product : static_cast<std::byte*>(y));
    now.workspace = args.workspace;
    now.threads = args.threads;
    gemv(now);
    if (half) narrow(y_type, now.y, y, now.rows * now.ldy, args.threads);
  }
};

struct Parts {
  const MatMul& prim;
  const SelectRequest& request;
  Quantised q;

  int64_t count() const { return matrices(request.inputs[weights]); }

  // The same product by floats.
  MatMul plain() const {
    MatMul made = prim;
    made.b_type = DType::none;
    return made;
  }
  std::vector<TensorDesc> inputs(const Constant* floats) const {
    std::vector<TensorDesc> made(request.inputs.begin(), request.inputs.end());
    TensorDesc& b = made[weights];
    b.dtype = DType::float32;
    b.shape[b.shape.size() - 1] = q.k;
    b.strides = Dims(b.shape.size(), 1);
    for (size_t i = b.shape.size(); i-- > 1;) b.strides[i - 1] = b.strides[i] * b.shape[i];
    b.constant = floats;
    made[zeros] = made[scales] = TensorDesc{};
    return made;
  }
  Selection select(const std::vector<TensorDesc>& given, PackCache& packs) const {
    const Prim product = plain();
    const SelectRequest inner{product,        given,         request.outputs, request.numbers,
                              request.threads, request.force, packs};
    return select_matmul(std::get<MatMul>(product), inner);
  }
};

std::optional<Selection> few_rows(const Parts& parts) {
  const SelectRequest& request = parts.request;
  const TensorDesc &a = request.inputs[0], &y = request.outputs[0];
  const int64_t rows = parts.q.n ? y.count() / parts.q.n : 0;
  if (parts.count() != 1 || rows == 0 || rows > most_gemv_rows || !a.contiguous()) {
    return std::nullopt;
  }
  if (!gemv_takes(parts.q) || !y.contiguous()) return std::nullopt;
  const MatMulTask task(parts.prim, request);
  auto body = std::make_shared<GemvBody>();
  QuantisedGemv& call = body->call;
  call.b = parts.q;
  call.rows = rows, call.ldy = parts.q.n;
  call.a_type = a.dtype;
  call.alpha = float(parts.prim.alpha);
  body->y_type = task.product.dtype;
  body->product = aligned(gemv_workspace(parts.q, rows));
  Selection selection;
  selection.workspace = body->product;
  if (body->y_type != DType::float32) {
    selection.workspace += aligned(size_t(rows * parts.q.n) * sizeof(float));
  }
  selection.rung = "quantised gemv";
  selection.reason = "few rows: the stored bytes are read";
  selection.steps.push_back({StepKind::gemm, std::move(body)});
  return task.finish(std::move(selection));
}

}  // namespace

Quantised quantised_of(const MatMul& prim, const SelectRequest& request) {
  const plan::QuantisedSizes sizes = plan::quantised_sizes(prim, request);
  Quantised q;
  q.type = prim.b_type;
  q.scale_type = request.inputs[scales].dtype, q.zero_type = request.inputs[zeros].dtype;
  q.n = sizes.n, q.k = sizes.k, q.row_bytes = sizes.row_bytes;
  q.block_n = prim.block_n, q.block_k = prim.block_k;
  q.scale_row = sizes.scale_row;
  q.one_zero = sizes.one_zero;
  return q;
}

Quantised with_operands(Quantised q, void* const* operands) {
  q.codes = static_cast<const std::byte*>(operands[weights]);
  q.zeros = operands[zeros];
  q.scales = operands[scales];
  return q;
}

bool quantised_constant(const SelectRequest& request) {
  const auto ready = [&](size_t i) {
    return request.inputs[i].dtype == DType::none || request.inputs[i].constant;
  };
  return ready(weights) && ready(zeros) && ready(scales);
}

std::string quantised_source(const SelectRequest& request) {
  const Constant* zero = request.inputs[zeros].constant;
  return "dequantised by " + request.inputs[scales].constant->source + " " +
         (zero ? zero->source : "") + " ";
}

Quantised with_constants(Quantised q, const SelectRequest& request) {
  const auto data = [&](size_t i) {
    const Constant* constant = request.inputs[i].constant;
    return const_cast<void*>(constant ? constant->data : nullptr);
  };
  void* const placed[] = {nullptr, data(weights), nullptr, data(zeros), data(scales)};
  return with_operands(q, placed);
}

MatrixSteps matrix_steps(const MatMul& prim, const SelectRequest& request) {
  const plan::QuantisedSizes sizes = plan::quantised_sizes(prim, request);
  return {sizes.matrix_bytes(), sizes.scale_matrix};
}

Selection matmul_quantised(const MatMul& prim, const SelectRequest& request) {
  const Parts parts{prim, request, quantised_of(prim, request)};
  if (!quantised_constant(request)) {
    if (auto found = few_rows(parts)) return std::move(*found);
  } else {
    const Quantised q = with_constants(parts.q, request);
    FloatPacks packs(request.packs, q, matrix_steps(prim, request), request, parts.count());
    Selection found = parts.select(parts.inputs(&packs.floats), packs);
    if (packs.used) {
      found.reason = "weights dequantised once; " + found.reason;
      return found;
    }
  }
  auto body = std::make_shared<DequantiseBody>();
  body->q = parts.q, body->steps = matrix_steps(parts.prim, request), body->count = parts.count();
  Composer composer;
  const Place floats = composer.reserve(size_t(body->count * parts.q.n * parts.q.k) *
                                        sizeof(float));
  Selection first;
  first.steps.push_back({StepKind::launch, std::move(body)});
  composer.add(std::move(first), {Place::operand(weights), Place::operand(zeros),
                                  Place::operand(scales), floats});
  Selection product = parts.select(parts.inputs(nullptr), request.packs);
  const std::string rung = "dequantised, " + product.rung;
  const std::string reason = "weights that are computed are dequantised by each run";
  std::vector<Place> operands;
  for (size_t i = 0; i < request.inputs.size() + request.outputs.size(); ++i) {
    operands.push_back(i == weights ? floats
                       : i == zeros || i == scales ? Place::absent() : Place::operand(i));
  }
  composer.add(std::move(product), std::move(operands));
  return composer.finish(rung, reason);
}

}  // namespace rlx::cpu
