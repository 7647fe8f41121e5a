// Turns a chain of named epilogue operations into a primitive's bias and post-ops.
#pragma once

#include <optional>
#include <vector>

#include "backend.h"
#include "cpu/onednn/body.h"
#include "cpu/select/epilogue.h"

namespace rlx::cpu::onednn {

struct PostOpPlan {
  Attributes attributes;
  int bias = -1;                    // the operand that a leading per-channel add names
  std::vector<Argument> arguments;  // operands of the binary post-ops
};

// `dims` and `strides` are the result's, in oneDNN's order (batch, channel, space); operands of
// its shape are read from `offset` bytes on. A leading add for each channel becomes the bias.
PostOpPlan plan_post_ops(const Epilogue& epilogue, std::span<const int64_t> dims,
                         std::span<const int64_t> strides, size_t offset);

}  // namespace rlx::cpu::onednn
