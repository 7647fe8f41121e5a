// What oneDNN offers to select: steps for a primitive, or nothing and the reason.
// Built without oneDNN, cpu/no_onednn answers instead; only cpu/onednn includes oneDNN's headers.
#pragma once

#include <optional>
#include <string>

#include "backend.h"
#include "cpu/kernels/conv.h"
#include "cpu/select/epilogue.h"

namespace rlx::cpu {

// A float32 convolution of dense operands, `epilogue` appended to the sums; constant weights may
// be of a half type. On nullopt, `refusal` says why.
std::optional<Selection> onednn_conv(const SelectRequest& request,
                                     const ConvGeometry& geometry, const Epilogue& epilogue,
                                     std::string& refusal);

}  // namespace rlx::cpu
