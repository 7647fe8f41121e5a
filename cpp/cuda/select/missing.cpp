// Primitives without CUDA kernels as yet; a family that lands takes its line away.
#include "cuda/select/select.h"

namespace rlx::cuda {
namespace {

[[noreturn]] void refuse(const SelectRequest& request) {
  Error error(ErrorKind::unsupported,
              std::string("the CUDA backend has no ") + name_of(request.prim) + " kernel");
  error.remedy = "device=\"cpu\"";
  throw error;
}

}  // namespace

#define RLX_MISSING(Prim, function) \
  Selection function(const Prim&, const SelectRequest& request, const Tools&) { refuse(request); }

RLX_MISSING(NonMaxSuppression, select_non_max_suppression)
RLX_MISSING(Fft, select_fft)
RLX_MISSING(Map, select_map)

#undef RLX_MISSING

Selection select_unique(const Sort&, const SelectRequest& request, const Tools&) {
  refuse(request);
}

}  // namespace rlx::cuda
