// MatMul: cuBLASLt with bias and activation inside where its own are exact, cuBLASLt with the
// epilogue behind it, else kernels of our own. Each rung left out says why. Where one operand is
// half and the other float32, one of both is converted before the product.
#include <algorithm>
#include <bit>

#include "core/transpose.h"
#include "cuda/libs/blas_lt.h"
#include "cuda/libs/libraries.h"
#include "cuda/select/fallback.h"
#include "cuda/select/parts.h"
#include "cuda/select/product_choice.h"
#include "plan/compose.h"
#include "plan/epilogue.h"
#include "plan/product.h"

namespace rlx::cuda {
namespace {

using plan::BatchAxis;
using plan::EpilogueOp;
using plan::Place;

constexpr size_t fixed_operands = MatMul::operands;
constexpr int64_t arena_alignment = 64;

// What cuBLASLt computes behind the product: alpha, residual, bias, ReLU, in this order.
struct LtChain {
  double alpha = 1;
  int bias = -1, residual = -1;  // operands of the node
  bool relu = false;
};

std::optional<LtChain> lt_chain(const plan::Epilogue& ops) {
  LtChain chain;
  for (const EpilogueOp& op : ops) {
    const bool sum = op.kind == EpilogueOp::Kind::add && !chain.relu;
    if (op.kind == EpilogueOp::Kind::relu && op.alpha == 0.0f && !chain.relu) {
      chain.relu = true;
    } else if (sum && op.extent == EpilogueOp::Extent::channel && chain.bias < 0) {
      chain.bias = op.operand;
    } else if (sum && op.extent == EpilogueOp::Extent::full && chain.residual < 0) {
      chain.residual = op.operand;
    } else if (op.kind == EpilogueOp::Kind::linear && op.beta == 0.0f && !chain.relu &&
               chain.bias < 0 && chain.residual < 0) {
      chain.alpha *= op.alpha;
    } else {
      return std::nullopt;
    }
  }
  return chain;
}

class LtBody final : public StepBody {
 public:
  std::unique_ptr<LtProduct> product;
  LtChain chain;
  std::vector<BatchAxis> outer;  // batch axes that the library's one batch does not hold
  std::shared_ptr<const void> packed;
  size_t result = 0, a_size = 0, b_size = 0, c_size = 0;

  void run(const RunArgs& args) const override {
    const auto at = [&](int i) {
      return i < 0 ? nullptr : static_cast<std::byte*>(args.operands[i]);
    };
    const auto* b = packed ? static_cast<const std::byte*>(packed.get()) : at(1);
    each(args, 0, at(0), b, at(chain.residual), at(int(result)));
  }

 private:
  void each(const RunArgs& args, size_t axis, const std::byte* a, const std::byte* b,
            const std::byte* residual, std::byte* d) const {
    if (axis == outer.size()) {
      const void* bias = chain.bias < 0 ? nullptr : args.operands[chain.bias];
      product->run(a, b, bias, residual, d, args.workspace, static_cast<Stream>(args.stream));
      return;
    }
    const BatchAxis& x = outer[axis];
    for (int64_t i = 0; i < x.extent; ++i) {
      each(args, axis + 1, a + i * x.a * int64_t(a_size), b + i * x.b * int64_t(b_size),
           residual ? residual + i * x.c * int64_t(c_size) : nullptr,
           d + i * x.c * int64_t(c_size));
    }
  }
};

bool lt_takes(DType a, DType b, DType d) {
  if (a != b) return false;
  if (a == DType::float32 || a == DType::float64) return d == a;
  if (is_half(a)) return d == a || d == DType::float32;
  return false;
}

class MatMulSelect {
 public:
  MatMulSelect(const MatMul& prim, const SelectRequest& request, const Tools& tools)
      : prim_(prim), request_(request), tools_(tools) {}

  Selection select() const {
    std::string refusal;
    if (product_rung(request_.force)) {
      refusal = "rung '" + std::string(request_.force) + "' was asked for";
    } else if (BlasLt* library = tools_.libraries ? tools_.libraries->blas_lt(refusal) : nullptr) {
      auto found = mixed() ? converted(*library, refusal) : by_library(*library, refusal);
      if (found) return std::move(*found);
    } else {
      check_not_forced(request_.force, "cublaslt", refusal);
    }
    log_fallback(tools_.options.log_fallback, "MatMul", refusal);
    Selection selection = select_matmul_kernel(prim_, request_, tools_);
    const bool both = !refusal.empty() && !selection.reason.empty();
    selection.reason = refusal + (both ? "; " : "") + selection.reason;
    return selection;
  }

 private:
  const TensorDesc& a() const { return request_.inputs[0]; }
  const TensorDesc& b() const { return request_.inputs[1]; }
  const TensorDesc& output() const { return request_.outputs[0]; }

  bool mixed() const {
    const DType x = a().dtype, y = b().dtype;
    return (is_half(x) && y == DType::float32) || (x == DType::float32 && is_half(y));
  }

  // The float32 operand is rounded to the other's type where that was asked for, else the half one
  // is widened; in scratch of the run, so that weights keep their size.
  std::optional<Selection> converted(BlasLt& library, std::string& refusal) const {
    const std::string_view force = request_.force;
    const bool round = force.starts_with("cublaslt half") ||
                       (tools_.options.half_activations && !force.starts_with("cublaslt widened"));
    const size_t changed = round == is_half(a().dtype) ? 1 : 0;
    std::vector<TensorDesc> inputs(request_.inputs.begin(), request_.inputs.end());
    inputs[changed] = scratch_of(inputs[changed], inputs[1 - changed].dtype);
    const TensorDesc& scratch = inputs[changed];
    const SelectRequest part{request_.prim,    inputs,           request_.outputs,
                             request_.numbers, request_.threads, force.ends_with("+ region")
                                 ? "cublaslt + region" : "", request_.packs};
    auto found = MatMulSelect(prim_, part, tools_).by_library(library, refusal);
    if (!found) return found;
    plan::Composer composer;
    std::vector<Place> operands;
    for (size_t i = 0; i < inputs.size() + request_.outputs.size(); ++i) {
      operands.push_back(Place::operand(i));
    }
    operands[changed] = composer.reserve(scratch.bytes());
    composer.add(select_cast(request_.inputs[changed], scratch, request_, tools_),
                 {Place::operand(changed), operands[changed]});
    const std::string fused = found->rung.substr(std::string_view("cublaslt").size());
    const std::string types = std::string(name_of(request_.inputs[changed].dtype)) + " to " +
                              name_of(scratch.dtype);
    std::string reason = (round ? "activations are rounded from " + types + ", which was allowed"
                                : "weights are widened from " + types + " by each run, since "
                                  "activations are not to be rounded") +
                         (found->reason.empty() ? "" : "; ") + found->reason;
    const uint64_t unread = found->unread;
    composer.add(std::move(*found), std::move(operands));
    Selection whole = composer.finish((round ? "cublaslt half" : "cublaslt widened") + fused,
                                      std::move(reason));
    whole.unread = unread;
    return whole;
  }

  std::optional<Selection> by_library(BlasLt& library, std::string& refusal) const {
    const bool zero_points = request_.inputs[2].dtype != DType::none ||
                             request_.inputs[3].dtype != DType::none;
    if (zero_points || !output().contiguous()) {
      refusal = "zero points or a strided result";
      return std::nullopt;
    }
    const bool one_result = request_.outputs.size() == 1;
    if (one_result && request_.force != "cublaslt + region") {
      const auto named = plan::match_epilogue(request_, prim_.epilogue, int(fixed_operands),
                                              output().shape.size() - 1, output().dtype);
      const auto chain = named ? lt_chain(*named) : std::nullopt;
      if (chain) {
        if (auto body = product(library, output(), *chain, refusal)) {
          body->result = request_.inputs.size();
          return finish(std::move(body), named->empty() ? "cublaslt" : "cublaslt + epilogue");
        }
      }
    }
    if (!prim_.epilogue) return std::nullopt;
    return with_region(library, refusal);
  }

  // The product in memory, then the Region as a kernel.
  std::optional<Selection> with_region(BlasLt& library, std::string& refusal) const {
    TensorDesc between = output();
    // A product in half is rounded once more than need be, and has half the traffic.
    const bool half = between.dtype == a().dtype;
    between.dtype = half ? between.dtype : prim_.accumulate;
    auto body = product(library, between, {}, refusal);
    if (!body) return std::nullopt;
    body->result = fixed_operands;
    plan::Composer composer;
    const bool in_place = output().dtype == between.dtype && request_.outputs.size() == 1;
    const Place at = in_place ? Place::operand(request_.inputs.size())
                              : composer.reserve(between.bytes());
    std::vector<Place> operands;
    for (size_t i = 0; i < fixed_operands; ++i) operands.push_back(Place::operand(i));
    operands.push_back(at);
    Selection core = finish(std::move(body), "");
    const uint64_t unread = core.unread;
    composer.add(std::move(core), std::move(operands));
    const auto by_kernel = [&](const SelectRequest& part) {
      return select_region(std::get<Region>(part.prim), part, tools_);
    };
    composer.add_epilogue(by_kernel, request_, prim_.epilogue, fixed_operands, between, at);
    Selection whole = composer.finish("cublaslt + region", "the library has no such epilogue");
    whole.unread = unread;
    return whole;
  }

  Selection finish(std::shared_ptr<LtBody> body, std::string rung) const {
    Selection selection;
    selection.workspace = body->product->workspace();
    selection.unread = body->packed ? 2 : 0;
    selection.rung = std::move(rung);
    selection.steps.push_back({StepKind::gemm, std::move(body)});
    return selection;
  }

  std::shared_ptr<LtBody> product(BlasLt& library, const TensorDesc& result, const LtChain& chain,
                                  std::string& refusal) const {
    if (!lt_takes(a().dtype, b().dtype, result.dtype)) {
      refusal = "cuBLASLt lacks these types";
      return nullptr;
    }
    const auto left = plan::matrix_of(a(), prim_.trans_a);
    const auto right = plan::matrix_of(b(), prim_.trans_b);
    LtProblem p = problem(result, chain);
    if (!left || !right || p.m == 0 || p.n == 0 || p.k == 0) {
      refusal = "strided or empty matrices";
      return nullptr;
    }
    p.lda = std::max<int64_t>(left->ld, 1), p.ldb = std::max<int64_t>(right->ld, 1), p.ldd = p.n;
    p.trans_a = left->trans, p.trans_b = right->trans;
    auto body = std::make_shared<LtBody>();
    // TF32 products are up to 1.45 times faster with the weights stored [N, K].
    if (p.tf32 && !p.trans_b && b().constant && b().shape.size() == 2 && b().contiguous() &&
        p.n > 1) {
      body->packed = transposed(p.k, p.n);
      p.trans_b = true, p.ldb = p.k;
    }
    body->outer = plan::batch_axes(a(), b(), result);
    fold_batch(p, body->outer);
    body->a_size = size_of(p.a), body->b_size = size_of(p.b), body->c_size = size_of(p.d);
    body->chain = chain;
    p.alignment = alignment(p, *body);
    body->product = library.make(p, refusal);
    return body->product ? body : nullptr;
  }

  std::shared_ptr<const void> transposed(int64_t rows, int64_t cols) const {
    const Constant& constant = *b().constant;
    constexpr size_t line = 16;  // columns: tasks share no cache lines
    const size_t row = size_t(rows) * 4;
    const auto* from = static_cast<const uint32_t*>(constant.data);
    const auto fill = [=](void* to, size_t offset, size_t bytes) {
      transpose(from + offset / row, cols, rows, int64_t(bytes / row), static_cast<uint32_t*>(to),
                rows);
    };
    return tools_.weights->pack(tools_.user, constant, "transposed", constant.bytes, line * row,
                                 fill);
  }

  LtProblem problem(const TensorDesc& result, const LtChain& chain) const {
    LtProblem p;
    const size_t rank = result.shape.size(), a_rank = a().shape.size();
    p.m = result.shape[rank - 2], p.n = result.shape[rank - 1];
    p.k = a().shape[prim_.trans_a ? a_rank - 2 : a_rank - 1];
    p.a = a().dtype, p.b = b().dtype, p.d = result.dtype;
    p.tf32 = tools_.options.tf32 && p.a == DType::float32;
    p.alpha = prim_.alpha * chain.alpha;
    p.bias = chain.bias >= 0, p.relu = chain.relu, p.residual = chain.residual >= 0;
    return p;
  }

  // A batch that shares b is more rows; one other axis is the library's batch.
  static void fold_batch(LtProblem& p, std::vector<BatchAxis>& axes) {
    if (!axes.empty()) {
      const BatchAxis& x = axes.back();
      if (x.b == 0 && !p.trans_a && x.a == p.m * p.lda && x.c == p.m * p.ldd) {
        p.m *= x.extent;
        axes.pop_back();
      }
    }
    if (axes.empty() || p.bias) return;  // the library's bias would differ from batch to batch
    const BatchAxis x = axes.back();
    axes.pop_back();
    p.batch = x.extent, p.stride_a = x.a, p.stride_b = x.b, p.stride_d = x.c;
  }

  // What all addresses that the library sees are multiples of.
  static int64_t alignment(const LtProblem& p, const LtBody& body) {
    uint64_t bits = uint64_t(arena_alignment);
    const auto see = [&](int64_t a, int64_t b, int64_t d) {
      bits |= uint64_t(a) * body.a_size | uint64_t(b) * body.b_size | uint64_t(d) * body.c_size;
    };
    see(p.stride_a, p.stride_b, p.stride_d);
    for (const BatchAxis& x : body.outer) see(x.a, x.b, x.c);
    return int64_t(1) << std::countr_zero(bits);
  }

  const MatMul& prim_;
  const SelectRequest& request_;
  const Tools& tools_;
};

}  // namespace

Selection select_matmul(const MatMul& prim, const SelectRequest& request, const Tools& tools) {
  if (prim.b_type != DType::none || request.inputs[5].dtype != DType::none) {
    return select_matmul_dequant(prim, request, tools);
  }
  return MatMulSelect(prim, request, tools).select();
}

}  // namespace rlx::cuda
