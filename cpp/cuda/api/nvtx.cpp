// Takes NVTX's functions from its library.
#include "cuda/api/nvtx.h"

#include "cuda/api/loader.h"

namespace rlx::cuda::api {

Ranges::Ranges() {
  const Found& library = loader().get(Lib::nvtx);
  load_optional(library, push_, "nvtxRangePushA");
  load_optional(library, pop_, "nvtxRangePop");
  if (!push_ || !pop_) push_ = nullptr;
}

void Ranges::enter(const char* name) {
  if (!push_) return;
  if (open_) pop_();
  open_ = name != nullptr;
  if (open_) push_(name);
}

}  // namespace rlx::cuda::api
