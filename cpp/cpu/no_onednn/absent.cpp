// Answers for oneDNN in a build without it: it takes nothing.
#include "cpu/onednn/api.h"

namespace rlx::cpu {

std::optional<Selection> onednn_conv(const SelectRequest&, const ConvGeometry&, const Epilogue&,
                                     std::string& refusal) {
  refusal = "this build has no oneDNN";
  return std::nullopt;
}

}  // namespace rlx::cpu
