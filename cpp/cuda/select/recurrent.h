// cuDNN's way of a recurrent layer; the kernel of recurrent.cpp takes everything.
#pragma once

#include <optional>

#include "cuda/select/select.h"

namespace rlx::cuda {

// Nothing, with the reason, when cuDNN cannot do the layer.
std::optional<Selection> select_recurrent_library(const Recurrent& prim,
                                                  const SelectRequest& request, const Tools& tools,
                                                  std::string& refusal);

}  // namespace rlx::cuda
