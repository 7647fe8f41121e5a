// Attention: cuDNN where it is present and takes the form, else kernels of our own.
#include "cuda/select/select.h"

namespace rlx::cuda {

Selection select_attention(const Attention& prim, const SelectRequest& request,
                           const Tools& tools) {
  return select_attention_kernel(prim, request, tools);
}

}  // namespace rlx::cuda
