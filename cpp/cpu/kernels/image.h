// Where the elements of an image batch are, whatever its layout.
#pragma once

#include <cstdint>

namespace rlx::cpu {

// Batch, channel and space strides, counted in elements. Missing spatial axes come first.
struct ImageStrides {
  int64_t batch = 0, channel = 0;
  int64_t space[3] = {0, 0, 0};
};

}  // namespace rlx::cpu
