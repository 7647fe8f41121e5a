// Where the elements of an image batch are, whatever its layout.
#pragma once

#include <cstdint>

namespace rlx::cpu {

// Batch, channel and space strides, counted in elements. Missing spatial axes come first.
struct ImageStrides {
  int64_t batch = 0, channel = 0;
  int64_t space[3] = {0, 0, 0};
};

// Those of a dense batch of images of `space`, channels last.
inline ImageStrides dense_channels_last(int64_t channels, const int64_t* space) {
  const int64_t row = space[2] * channels, plane = space[1] * row;
  return {space[0] * plane, 1, {plane, row, channels}};
}

}  // namespace rlx::cpu
