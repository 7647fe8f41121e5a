// One select function for each primitive family: the CPU's steps for it at known dims.
#pragma once

#include "backend.h"

namespace rlx::cpu {

Selection select_region(const Region& prim, const SelectRequest& request);
Selection select_reduce(const Reduce& prim, const SelectRequest& request);
Selection select_cumulate(const Cumulate& prim, const SelectRequest& request);
Selection select_matmul(const MatMul& prim, const SelectRequest& request);
Selection select_conv(const Conv& prim, const SelectRequest& request);
Selection select_pool(const Pool& prim, const SelectRequest& request);
Selection select_softmax(const Softmax& prim, const SelectRequest& request);
Selection select_norm(const Norm& prim, const SelectRequest& request);
Selection select_attention(const Attention& prim, const SelectRequest& request);
Selection select_gather(const Gather& prim, const SelectRequest& request);
Selection select_scatter(const Scatter& prim, const SelectRequest& request);
Selection select_move(const Move& prim, const SelectRequest& request);
Selection select_resize(const Resize& prim, const SelectRequest& request);
Selection select_sort(const Sort& prim, const SelectRequest& request);
Selection select_non_max_suppression(const NonMaxSuppression& prim, const SelectRequest& request);
Selection select_random(const Random& prim, const SelectRequest& request);
Selection select_recurrent(const Recurrent& prim, const SelectRequest& request);
Selection select_fft(const Fft& prim, const SelectRequest& request);
Selection select_map(const Map& prim, const SelectRequest& request);

}  // namespace rlx::cpu
