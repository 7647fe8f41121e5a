// An epilogue Region as a chain of named operations, for libraries and kernels that know those.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backend.h"

namespace rlx::plan {

struct EpilogueOp {
  enum class Kind : uint8_t {
    add, sub, mul, div, max, min,              // x with `operand`
    linear,                                    // alpha * x + beta
    relu,                                      // x < 0 ? alpha * x : x
    clip,                                      // min(max(x, alpha), beta)
    hardswish,                                 // x * clip(alpha * x + beta, 0, 1)
    sigmoid, tanh, gelu, gelu_tanh, silu, abs, sqrt, exp
  };
  enum class Extent : uint8_t { scalar, channel, full };  // of `operand`, against the output

  Kind kind{};
  float alpha = 0.0f, beta = 0.0f;
  int operand = -1;  // index among the node's inputs
  Extent extent{};
};

using Epilogue = std::vector<EpilogueOp>;

// The chain that equals `region`, whose loads 1.. are the inputs from `first_extra` on, stored as
// `operands`; nothing when it has another form or computes in another type than float32. A null
// region is the empty chain.
std::optional<Epilogue> match_epilogue(const SelectRequest& request, const RegionPtr& region,
                                       int first_extra, size_t channel_axis,
                                       DType operands = DType::float32);

}  // namespace rlx::plan
