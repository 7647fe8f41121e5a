// Conv: cuDNN where it is present and takes the shape, else kernels of our own.
#include "cuda/select/select.h"

namespace rlx::cuda {

Selection select_conv(const Conv& prim, const SelectRequest& request, const Tools& tools) {
  return select_conv_kernel(prim, request, tools);
}

}  // namespace rlx::cuda
