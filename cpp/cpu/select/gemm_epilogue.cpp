// Reads a chain of named operations as the fixed sequence that the matrix product can do.
#include "cpu/select/gemm_epilogue.h"

namespace rlx::cpu {
namespace {

using Kind = EpilogueOp::Kind;
using Extent = EpilogueOp::Extent;

std::optional<Activation> activation_of(const EpilogueOp& op, GemmEpilogue& epilogue) {
  switch (op.kind) {
    case Kind::relu:
      if (op.alpha != 0.0f) return std::nullopt;
      return Activation::relu;
    case Kind::clip:
      epilogue.low = op.alpha;
      epilogue.high = op.beta;
      return Activation::clip;
    case Kind::sigmoid: return Activation::sigmoid;
    case Kind::tanh: return Activation::tanh;
    case Kind::gelu: return Activation::gelu_erf;
    case Kind::gelu_tanh: return Activation::gelu_tanh;
    case Kind::silu: return Activation::silu;
    default: return std::nullopt;
  }
}

}  // namespace

std::optional<GemmChain> gemm_chain(const Epilogue& chain) {
  GemmChain made;
  bool activated = false;
  for (const EpilogueOp& op : chain) {
    const bool adds = op.kind == Kind::add && op.operand >= 0;
    const bool first = &op == &chain.front();
    if (first && op.kind == Kind::linear && op.beta == 0.0f) {
      made.alpha = op.alpha;
    } else if (adds && op.extent == Extent::channel && made.bias < 0 && !activated) {
      made.bias = op.operand;
    } else if (adds && op.extent == Extent::full && made.residual < 0) {
      made.residual = op.operand;
      made.epilogue.residual_first = !activated;
    } else if (!activated) {
      const auto activation = activation_of(op, made.epilogue);
      if (!activation) return std::nullopt;
      made.epilogue.activation = *activation;
      activated = true;
    } else {
      return std::nullopt;
    }
  }
  made.epilogue.add_residual = made.residual >= 0;
  return made;
}

}  // namespace rlx::cpu
