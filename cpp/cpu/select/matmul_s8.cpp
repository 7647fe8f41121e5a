// Matrix products of int8 and uint8 with zero points, exact in int32, by the packed kernel.
#include <algorithm>

#include "cpu/kernels/gemm_s8.h"
#include "cpu/select/compose.h"
#include "cpu/select/gemm_tile.h"
#include "cpu/select/matmul_task.h"

namespace rlx::cpu {
namespace {

struct S8Body : StepBody {
  GemmS8Call call;
  std::optional<GemmTile> tile;
  std::shared_ptr<const void> packed;
  size_t result = matmul_operands;  // the operand that is written
  size_t tile_workspace = 0;

  void run(const RunArgs& args) const override {
    void* const* o = args.operands;
    GemmS8Call now = call;
    now.threads = args.threads;
    now.workspace = static_cast<std::byte*>(args.workspace) + tile_workspace;
    now.a = o[0];
    now.b = packed ? packed.get() : o[1];
    now.a_zero = o[2];
    now.b_zero = o[3];
    now.c = static_cast<int32_t*>(o[result]);
    std::optional<GemmTile::Use> use;
    if (tile) use.emplace(*tile, now, o + matmul_operands - 1, args.workspace);
    gemm_s8(now);
  }
};

bool is_byte(DType type) { return type == DType::int8 || type == DType::uint8; }

void pack(const MatMulTask& task, const Matrix& matrix, S8Body& body,
          std::vector<BatchAxis>& axes) {
  const int64_t count = task.constant_matrices(), size = task.k * task.n;
  if (count == 0) return;
  const Constant& constant = *task.b().constant;
  const int64_t each = gemm_s8_packed_bytes(task.k, task.n);
  const std::string format = std::string(matrix.trans ? "s8 transposed " : "s8 ") +
                             std::to_string(task.k) + " " + std::to_string(task.n);
  const auto fill = [&](void* to) {
    for (int64_t i = 0; i < count; ++i) {
      gemm_s8_pack_b(task.b().dtype == DType::int8,
                     static_cast<const std::byte*>(constant.data) + i * size, matrix.ld,
                     matrix.trans, task.k, task.n, static_cast<std::byte*>(to) + i * each,
                     task.request.threads);
    }
  };
  body.packed = task.request.packs.get(constant, format, size_t(count * each), fill);
  body.call.b_packed = true;
  for (BatchAxis& axis : axes) axis.b = axis.b / size * each;
}

}  // namespace

std::optional<Selection> matmul_s8(const MatMulTask& task, std::string& refusal) {
  const SelectRequest& request = task.request;
  const auto a = matrix_of(task.a(), task.prim.trans_a), b = matrix_of(task.b(), task.prim.trans_b);
  if (!is_byte(task.a().dtype) || !is_byte(task.b().dtype) ||
      task.product.dtype != DType::int32) {
    refusal += "; not 8-bit";
    return std::nullopt;
  }
  std::vector<BatchAxis> axes = task.batch_axes();
  if (axes.size() > 3 || !a || !b || !task.product.contiguous() || task.prim.alpha != 1.0) {
    refusal += "; more than three batch axes, or strided matrices";
    return std::nullopt;
  }
  auto body = std::make_shared<S8Body>();
  GemmS8Call& call = body->call;
  params::Gemm& shape = call.shape;
  shape.m = task.m, shape.n = task.n, shape.k = task.k;
  shape.lda = a->ld, shape.ldb = b->ld, shape.ldc = task.n;
  shape.trans_a = a->trans, shape.trans_b = b->trans;
  call.a_signed = task.a().dtype == DType::int8;
  call.b_signed = task.b().dtype == DType::int8;
  call.a_zero_step = task.given(2) && request.inputs[2].count() > 1;
  call.b_zero_step = task.given(3) && request.inputs[3].count() > 1;
  call.threads = request.threads;
  pack(task, *b, *body, axes);
  MatMulTask::place_batch(axes, shape);
  Selection selection;
  selection.rung = "gemm s8";
  const bool fused = task.prim.epilogue && request.outputs[0].contiguous();
  if (fused) {
    body->result = request.inputs.size();
    body->tile.emplace(*task.prim.epilogue, request, task.product,
                       request.inputs.subspan(matmul_operands));
    GemmTile::claim(call);
    body->tile_workspace = aligned(body->tile->workspace(request.threads));
    selection.rung += " + region";
  }
  selection.workspace = body->tile_workspace + gemm_s8_workspace(call);
  selection.reason = body->packed ? "b packed once" : "b is computed";
  selection.steps.push_back({StepKind::gemm, std::move(body)});
  return fused ? std::move(selection) : task.finish(std::move(selection));
}

}  // namespace rlx::cpu
