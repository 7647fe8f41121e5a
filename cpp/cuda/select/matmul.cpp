// MatMul: the ladder of rungs, libraries before kernels of our own.
#include "cuda/select/select.h"

namespace rlx::cuda {

Selection select_matmul(const MatMul& prim, const SelectRequest& request, const Tools& tools) {
  return select_matmul_kernel(prim, request, tools);
}

}  // namespace rlx::cuda
