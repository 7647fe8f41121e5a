// What the steps of our attention kernels share: operands as parameters, the score, alignment.
#pragma once

#include "cuda/select/parts.h"
#include "kernels/params/attention.h"

namespace rlx::cuda {

using AttentionLaunch = LaunchBuilder<params::Attention>;

// The score modifier, if there is one, as the kernel's generated header.
void add_score(const Attention& prim, const SelectRequest& request, AttentionLaunch& launch,
               KernelSpec& kernel, int vector_limit = 1);

// How many neighbours are aligned together everywhere: 16 bytes, 4, or 1 element. Of halves the
// tensor cores' kernel wants pairs.
int aligned_elements(const params::Attention& p, size_t size);

// Why the kernels for few query rows are not taken; empty when they are.
std::string decode_refusal(const params::Attention& p, DType dtype, std::string_view force);
// `kernel` names the type and form; adds the kernel, its grid, and how the keys are split.
Selection decode_attention(const Attention& prim, const SelectRequest& request,
                           const Tools& tools, AttentionLaunch& launch, KernelSpec kernel);

}  // namespace rlx::cuda
