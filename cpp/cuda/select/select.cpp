// Sends each primitive to its select function.
#include "cuda/select/select.h"

namespace rlx::cuda {
namespace {

struct Dispatch {
  const SelectRequest& request;
  const Tools& tools;

  Selection operator()(const Region& p) const { return select_region(p, request, tools); }
  Selection operator()(const Reduce& p) const { return select_reduce(p, request, tools); }
  Selection operator()(const Cumulate& p) const { return select_cumulate(p, request, tools); }
  Selection operator()(const MatMul& p) const { return select_matmul(p, request, tools); }
  Selection operator()(const Conv& p) const { return select_conv(p, request, tools); }
  Selection operator()(const Pool& p) const { return select_pool(p, request, tools); }
  Selection operator()(const Softmax& p) const { return select_softmax(p, request, tools); }
  Selection operator()(const Norm& p) const { return select_norm(p, request, tools); }
  Selection operator()(const Attention& p) const { return select_attention(p, request, tools); }
  Selection operator()(const Gather& p) const { return select_gather(p, request, tools); }
  Selection operator()(const Scatter& p) const { return select_scatter(p, request, tools); }
  Selection operator()(const Move& p) const { return select_move(p, request, tools); }
  Selection operator()(const Resize& p) const { return select_resize(p, request, tools); }
  Selection operator()(const Sort& p) const { return select_sort(p, request, tools); }
  Selection operator()(const NonMaxSuppression& p) const {
    return select_non_max_suppression(p, request, tools);
  }
  Selection operator()(const Random& p) const { return select_random(p, request, tools); }
  Selection operator()(const Recurrent& p) const { return select_recurrent(p, request, tools); }
  Selection operator()(const Fft& p) const { return select_fft(p, request, tools); }
  Selection operator()(const Map& p) const { return select_map(p, request, tools); }
};

}  // namespace

std::span<const std::string_view> rungs() {
  static constexpr std::string_view names[] = {
      "cublaslt half", "cublaslt half + region", "cublaslt widened", "cublaslt widened + region",
      "cublaslt", "cublaslt + region", "cudnn", "cudnn + region", "tensor cores", "gemv",
      "tensor core convolution", "tensor core attention", "decode attention", "tiled attention",
      "interpreted region", "kernel"};
  return names;
}

Selection select(const SelectRequest& request, const Tools& tools) {
  return std::visit(Dispatch{request, tools}, request.prim);
}

}  // namespace rlx::cuda
