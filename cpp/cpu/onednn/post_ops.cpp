// Turns a chain of named epilogue operations into a primitive's bias and post-ops.
#include "cpu/onednn/post_ops.h"

#include "core/error.h"
#include "core/small_vector.h"

namespace rlx::cpu::onednn {
namespace {

using Kind = EpilogueOp::Kind;
using Extent = EpilogueOp::Extent;

struct Eltwise {
  dnnl_alg_kind_t algorithm;
  float alpha, beta;
};

Eltwise eltwise(const EpilogueOp& op) {
  switch (op.kind) {
    case Kind::linear: return {dnnl_eltwise_linear, op.alpha, op.beta};
    case Kind::relu: return {dnnl_eltwise_relu, op.alpha, 0.0f};
    case Kind::clip: return {dnnl_eltwise_clip, op.alpha, op.beta};
    case Kind::hardswish: return {dnnl_eltwise_hardswish, op.alpha, op.beta};
    case Kind::sigmoid: return {dnnl_eltwise_logistic, 0.0f, 0.0f};
    case Kind::tanh: return {dnnl_eltwise_tanh, 0.0f, 0.0f};
    case Kind::gelu: return {dnnl_eltwise_gelu_erf, 0.0f, 0.0f};
    case Kind::gelu_tanh: return {dnnl_eltwise_gelu_tanh, 0.0f, 0.0f};
    case Kind::silu: return {dnnl_eltwise_swish, 1.0f, 0.0f};
    case Kind::abs: return {dnnl_eltwise_abs, 0.0f, 0.0f};
    case Kind::sqrt: return {dnnl_eltwise_sqrt, 0.0f, 0.0f};
    case Kind::exp: return {dnnl_eltwise_exp, 0.0f, 0.0f};
    default: throw Error(ErrorKind::internal, "epilogue: a binary operation without an operand");
  }
}

dnnl_alg_kind_t binary(Kind kind) {
  switch (kind) {
    case Kind::add: return dnnl_binary_add;
    case Kind::sub: return dnnl_binary_sub;
    case Kind::mul: return dnnl_binary_mul;
    case Kind::div: return dnnl_binary_div;
    case Kind::max: return dnnl_binary_max;
    case Kind::min: return dnnl_binary_min;
    default: throw Error(ErrorKind::internal, "epilogue: an operand without a binary operation");
  }
}

MemoryDesc operand_desc(const EpilogueOp& op, std::span<const int64_t> dims,
                        std::span<const int64_t> strides) {
  if (op.extent == Extent::full) return strided_desc(DType::float32, dims, strides);
  const int64_t channels = op.extent == Extent::channel ? dims[1] : 1;
  Dims shape(dims.size(), 1), dense(dims.size(), 1);
  shape[1] = channels;
  dense[0] = channels;
  return strided_desc(DType::float32, shape, dense);
}

}  // namespace

PostOpPlan plan_post_ops(const Epilogue& epilogue, std::span<const int64_t> dims,
                         std::span<const int64_t> strides, size_t offset) {
  PostOpPlan plan{new_attributes(), -1, {}};
  PostOps chain;
  check(dnnl_post_ops_create(chain.out()), "dnnl_post_ops_create");
  int position = 0;
  for (const EpilogueOp& op : epilogue) {
    const bool is_bias = &op == &epilogue[0] && op.kind == Kind::add &&
                         op.extent == Extent::channel && op.operand >= 0;
    if (is_bias) {
      plan.bias = op.operand;
      continue;
    }
    if (op.operand < 0) {
      const Eltwise e = eltwise(op);
      check(dnnl_post_ops_append_eltwise(chain.get(), e.algorithm, e.alpha, e.beta),
            "dnnl_post_ops_append_eltwise");
    } else {
      MemoryDesc desc = operand_desc(op, dims, strides);
      check(dnnl_post_ops_append_binary(chain.get(), binary(op.kind), desc.get()),
            "dnnl_post_ops_append_binary");
      plan.arguments.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(position) | DNNL_ARG_SRC_1,
                                std::move(desc), Place::operand(op.operand),
                                op.extent == Extent::full ? offset : 0});
    }
    ++position;
  }
  check(dnnl_primitive_attr_set_post_ops(plan.attributes.get(), chain.get()),
        "dnnl_primitive_attr_set_post_ops");
  return plan;
}

}  // namespace rlx::cpu::onednn
