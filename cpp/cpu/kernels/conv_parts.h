// Cuts a convolution into parts that threads compute side by side, each one a convolution.
#pragma once

#include <vector>

#include "cpu/kernels/conv.h"

namespace rlx::cpu {

struct ConvPart {
  ConvGeometry geometry;         // dense, channels last
  int64_t x_offset, y_offset;    // elements before its images
};

// Parts of a dense channels-last convolution for up to `threads` threads: images, or rows of an
// image along its first axis that has several. One part where nothing can be gained.
std::vector<ConvPart> conv_parts(const ConvGeometry& geometry, int threads);

}  // namespace rlx::cpu
