// Reads the layout of image operands: [N, C, spatial...] or, channels last, [N, spatial..., C].
#pragma once

#include "backend.h"
#include "cpu/kernels/image.h"

namespace rlx::cpu {

inline ImageStrides image_strides(const TensorDesc& desc, bool channels_last) {
  const size_t spatial = desc.shape.size() - 2;
  ImageStrides made;
  made.batch = desc.strides[0];
  made.channel = desc.strides[channels_last ? spatial + 1 : 1];
  for (size_t k = 0; k < spatial; ++k) {
    made.space[3 - spatial + k] = desc.strides[(channels_last ? 1 : 2) + k];
  }
  return made;
}

}  // namespace rlx::cpu
