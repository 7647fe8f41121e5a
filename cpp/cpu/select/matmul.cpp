// Matrix products: our packed kernels with the epilogue inside them, or plain loops.
//
// oneDNN is not asked: on one AVX2 core its f32 product (gemm:jit, which packs nothing) takes 0.55
// ms for 16 x 768 x 768 against our 0.53, 3.1 against 2.7 for 16 x 3072 x 768, 1.28 against 1.34
// for 1 x 8000 x 768; ahead at 4 x 768 x 768 (0.12 against 0.21). In 8 bits it is wrong without
// VNNI.
#include "cpu/kernels/matmul_plain.h"

#include "cpu/select/matmul_quantised.h"
#include "cpu/select/matmul_task.h"
#include "cpu/select/select.h"

namespace rlx::cpu {
namespace {

struct PlainBody : StepBody {
  PlainMatMul call;
  void run(const RunArgs& args) const override {
    void* const* o = args.operands;
    plain_matmul(call, o[0], o[1], o[2], o[3], o[matmul_operands], args.threads);
  }
};

}  // namespace

Selection matmul_plain(const MatMulTask& task) {
  auto body = std::make_shared<PlainBody>();
  PlainMatMul& call = body->call;
  call.m = task.m, call.n = task.n, call.k = task.k;
  call.a_type = task.a().dtype, call.b_type = task.b().dtype, call.c_type = task.product.dtype;
  if (!plain_matmul_takes(call.a_type, call.b_type, call.c_type)) {
    throw Error(ErrorKind::unsupported, "matrix products have no kernel for these types")
        .expected_got("one type, or int8 and uint8 with int32 results",
                      std::string(name_of(call.a_type)) + ", " + name_of(call.b_type) + " -> " +
                          name_of(call.c_type));
  }
  const auto strides = [](const TensorDesc& desc, bool trans) {
    const size_t rank = desc.shape.size();
    MatrixStrides made{desc.strides[rank - 2], desc.strides[rank - 1], {}};
    if (trans) std::swap(made.row, made.col);
    return made;
  };
  call.a = strides(task.a(), task.prim.trans_a);
  call.b = strides(task.b(), task.prim.trans_b);
  call.c = strides(task.product, false);
  for (const BatchAxis& axis : task.batch_axes()) {
    call.batch.push_back(axis.extent);
    call.a.batch.push_back(axis.a);
    call.b.batch.push_back(axis.b);
    call.c.batch.push_back(axis.c);
  }
  call.alpha = task.prim.alpha;
  call.a_zero_type = task.request.inputs[2].dtype;
  call.b_zero_type = task.request.inputs[3].dtype;
  call.a_zero_per_row = task.given(2) && task.request.inputs[2].count() > 1;
  call.b_zero_per_col = task.given(3) && task.request.inputs[3].count() > 1;
  Selection selection;
  selection.rung = "plain";
  selection.steps.push_back({StepKind::launch, std::move(body)});
  return selection;
}

Selection select_matmul(const MatMul& prim, const SelectRequest& request) {
  if (request.inputs[5].dtype != DType::none) return matmul_grouped(prim, request);
  if (prim.b_type != DType::none) return matmul_quantised(prim, request);
  const MatMulTask task(prim, request);
  std::string refusal;
  if (request.force.empty() || request.force == "gemm") {
    if (auto found = matmul_gemm(task, refusal)) return std::move(*found);
    if (auto found = matmul_s8(task, refusal)) return std::move(*found);
  }
  Selection found = matmul_plain(task);
  found.reason = refusal;
  return task.finish(std::move(found));
}

}  // namespace rlx::cpu
