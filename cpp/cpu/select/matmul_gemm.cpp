// Matrix products of floats and wide integers by the packed kernel.
#include <algorithm>

#include "cpu/kernels/gemm.h"
#include "cpu/select/compose.h"
#include "cpu/select/epilogue.h"
#include "cpu/select/gemm_epilogue.h"
#include "cpu/select/gemm_tile.h"
#include "cpu/select/matmul_task.h"

namespace rlx::cpu {
namespace {

struct GemmBody : StepBody {
  GemmCall call;
  GemmChain chain;
  std::optional<GemmTile> tile;
  std::shared_ptr<const void> packed;
  std::vector<BatchAxis> outer;  // what the kernel's three batch axes do not hold
  size_t result = matmul_operands;  // the operand that is written
  size_t tile_workspace = 0;

  void run(const RunArgs& args) const override {
    GemmCall now = call;
    now.threads = args.threads;
    now.workspace = static_cast<std::byte*>(args.workspace) + tile_workspace;
    now.a = args.operands[0];
    now.b = packed ? packed.get() : args.operands[1];
    now.c = args.operands[result];
    if (chain.bias >= 0) now.epilogue.bias = args.operands[chain.bias];
    if (chain.residual >= 0) {
      now.epilogue.residual = static_cast<const float*>(args.operands[chain.residual]);
    }
    std::optional<GemmTile::Use> use;
    if (tile) use.emplace(*tile, now, args.operands + matmul_operands - 1, args.workspace);
    each(now, 0);
  }

 private:
  void each(GemmCall& now, size_t axis) const {
    if (axis == outer.size()) return gemm(now);
    const GemmCall start = now;
    const int64_t b_item = int64_t(size_of(packed ? gemm_packed_type(now.b_type) : now.b_type));
    for (int64_t i = 0; i < outer[axis].extent; ++i) {
      const auto advance = [&](const void* base, int64_t bytes) {
        return static_cast<const std::byte*>(base) + i * bytes;
      };
      now.a = advance(start.a, outer[axis].a * int64_t(size_of(now.a_type)));
      now.b = advance(start.b, outer[axis].b * b_item);
      now.c = static_cast<std::byte*>(start.c) + i * outer[axis].c * int64_t(size_of(now.c_type));
      if (start.epilogue.residual) {
        now.epilogue.residual = start.epilogue.residual + i * outer[axis].c;
      }
      each(now, axis + 1);
    }
    now = start;
  }
};

bool takes(DType a, DType b, DType c) {
  const auto is_float = [](DType t) {
    return t == DType::float32 || is_half(t);
  };
  if (is_float(a)) return is_float(b) && is_float(c);
  return a == b && a == c &&
         (a == DType::float64 || a == DType::int32 || a == DType::uint32 || a == DType::int64 ||
          a == DType::uint64);
}

// Packs a constant b, matrix by matrix, and makes its batch strides count packed elements.
void pack(const MatMulTask& task, const Matrix& matrix, GemmBody& body,
          std::vector<BatchAxis>& axes) {
  const int64_t count = task.constant_matrices(), size = task.k * task.n;
  if (count == 0) return;
  const DType type = task.b().dtype;
  const Constant& constant = *task.b().constant;
  const int64_t each = gemm_packed_count(type, task.k, task.n);
  const size_t item = size_of(gemm_packed_type(type));
  const std::string format = std::string(matrix.trans ? "gemm transposed " : "gemm ") +
                             std::to_string(task.k) + " " + std::to_string(task.n);
  const auto fill = [&](void* to) {
    for (int64_t i = 0; i < count; ++i) {
      const size_t from = size_t(i * size) * size_of(type), at = size_t(i * each) * item;
      gemm_pack_b(type, static_cast<const std::byte*>(constant.data) + from, matrix.ld,
                  matrix.trans, task.k, task.n, static_cast<std::byte*>(to) + at,
                  task.request.threads);
    }
  };
  body.packed = task.request.packs.get(constant, format, size_t(count * each) * item, fill);
  body.call.b_packed = true;
  for (BatchAxis& axis : axes) axis.b = axis.b / size * each;
}

// Gives the kernel the epilogue, as a chain that it knows or as a Region on its blocks.
bool fuse(const MatMulTask& task, GemmBody& body, std::string& rung) {
  const MatMul& prim = task.prim;
  const SelectRequest& request = task.request;
  GemmCall& call = body.call;
  if (!prim.epilogue || task.product.dtype != DType::float32 || !request.outputs[0].contiguous()) {
    return false;
  }
  std::optional<GemmChain> chain;
  if (request.outputs.size() == 1) {
    const auto named = match_epilogue(request, prim.epilogue, int(matmul_operands),
                                      task.product.shape.size() - 1);
    if (named) chain = gemm_chain(*named);
  }
  if (chain) {
    body.chain = *chain;
    call.epilogue = chain->epilogue;
    call.shape.alpha *= chain->alpha;
    call.epilogue.residual_ld = task.n;
    std::copy_n(call.shape.c_batch, 3, call.epilogue.residual_batch);
    rung += " + chain";
    return true;
  }
  // Few rows by a B that is computed are streamed from where it lies; sums that a Region waits for
  // would have it packed first, which costs more than the product.
  constexpr int64_t streamed_rows = 4;
  if (!body.packed && task.m <= streamed_rows) return false;
  if (!body.outer.empty()) return false;  // the kernel then counts rows from 0 several times
  body.tile.emplace(*prim.epilogue, request, task.product,
                    request.inputs.subspan(matmul_operands));
  GemmTile::claim(call);
  rung += " + region";
  return true;
}

}  // namespace

std::optional<Selection> matmul_gemm(const MatMulTask& task, std::string& refusal) {
  if (!takes(task.a().dtype, task.b().dtype, task.product.dtype)) {
    refusal = "the packed kernel lacks these types";
    return std::nullopt;
  }
  const auto a = matrix_of(task.a(), task.prim.trans_a), b = matrix_of(task.b(), task.prim.trans_b);
  if (task.given(2) || task.given(3) || !a || !b || !task.product.contiguous()) {
    refusal = "zero points or strided matrices";
    return std::nullopt;
  }
  auto body = std::make_shared<GemmBody>();
  Selection selection;
  GemmCall& call = body->call;
  params::Gemm& shape = call.shape;
  shape.m = task.m, shape.n = task.n, shape.k = task.k;
  shape.lda = a->ld, shape.ldb = b->ld, shape.ldc = task.n;
  shape.trans_a = a->trans, shape.trans_b = b->trans;
  shape.alpha = task.prim.alpha;
  call.a_type = task.a().dtype, call.b_type = task.b().dtype, call.c_type = task.product.dtype;
  call.threads = task.request.threads;
  std::vector<BatchAxis> axes = task.batch_axes();
  pack(task, *b, *body, axes);
  body->outer = MatMulTask::place_batch(axes, shape);
  selection.rung = "gemm";
  const bool fused = fuse(task, *body, selection.rung);
  if (fused) body->result = task.request.inputs.size();
  if (body->tile) body->tile_workspace = aligned(body->tile->workspace(task.request.threads));
  selection.workspace = body->tile_workspace + gemm_workspace(call);
  selection.reason = body->packed ? "b packed once" : "b is computed";
  selection.steps.push_back({StepKind::gemm, std::move(body)});
  return fused ? std::move(selection) : task.finish(std::move(selection));
}

}  // namespace rlx::cpu
