// Forms of a convolution's constant weights that are made once.
#pragma once

#include "cuda/select/select.h"

namespace rlx::cuda {

// Half weights of float32 images, which are widened when they are packed.
bool widens_weights(const TensorDesc& x, const TensorDesc& w);

// The weights in the type of x; `last`: as [filters, taps, channels of a group].
std::shared_ptr<const void> pack_conv_weights(const Conv& prim, const SelectRequest& request,
                                              const Tools& tools, bool last);

}  // namespace rlx::cuda
