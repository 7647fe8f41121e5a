// Running sums and products along one axis of an outer x length x inner view.
#pragma once

#include "kernels/params/region.h"

namespace rlx::params {

struct Cumulate {
  Region source;
  void* y = nullptr;
  long long outer = 1, length = 1, inner = 1;
};

}  // namespace rlx::params
