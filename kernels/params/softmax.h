// Softmax over `length` values: rows that lie together, or columns `inner` apart.
#pragma once

#include "kernels/params/region.h"

namespace rlx::params {

struct Softmax {
  Region source;
  void* y = nullptr;
  long long outer = 1, length = 1, inner = 1;
};

}  // namespace rlx::params
