// What our kernels of convolutions share: sizes as parameters, and the one on tensor cores.
#pragma once

#include "cuda/select/parts.h"
#include "kernels/params/conv.h"

namespace rlx::cuda {

// Fills the sizes and strides of p; throws for channels that do not fit each other.
void fill_conv(const Conv& prim, const SelectRequest& request, params::Conv& p);
// Whether a coordinate or a count passes what kernels count in 32 bits.
bool wide_conv(const Conv& prim, const SelectRequest& request, const params::Conv& p);
// The type that sums are kept in and the epilogue is given.
DType conv_accumulation(const Conv& prim, DType y);

// Why not on tensor cores; empty when they take it.
std::string conv_tiles_refusal(const Conv& prim, const SelectRequest& request,
                               const params::Conv& p, const Tools& tools);
Selection conv_tiles(const Conv& prim, const SelectRequest& request, const params::Conv& p,
                     const Tools& tools);

}  // namespace rlx::cuda
