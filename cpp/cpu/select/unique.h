// Unique's selection, one of the kinds of Sort.
#pragma once

#include "backend.h"

namespace rlx::cpu {

Selection select_unique(const Sort& prim, const SelectRequest& request);

}  // namespace rlx::cpu
