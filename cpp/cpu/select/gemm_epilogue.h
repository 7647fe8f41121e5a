// Chains of named epilogue operations that our matrix product applies to its blocks itself.
#pragma once

#include <optional>

#include "cpu/kernels/gemm.h"
#include "cpu/select/epilogue.h"

namespace rlx::cpu {

struct GemmChain {
  GemmEpilogue epilogue;  // without pointers and strides
  double alpha = 1.0;     // scales the product
  int bias = -1, residual = -1;  // the node's inputs that they are
};

// alpha, then a per-column add, then one full add before or after an activation; or nothing.
std::optional<GemmChain> gemm_chain(const Epilogue& chain);

}  // namespace rlx::cpu
