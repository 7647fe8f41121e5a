// One select function for each primitive: the CUDA steps for it at known dims.
#pragma once

#include "backend.h"
#include "cuda/jit.h"
#include "cuda/launch.h"
#include "cuda/weights.h"

namespace rlx::cuda {

class Libraries;  // libs/libraries.h: cuBLASLt, cuDNN, each present or a reason

struct DeviceOptions {
  bool tf32 = true;    // float32 products, convolutions, attention may round operands to TF32
  bool log_fallback = false;  // say on stderr why a library was passed over
  bool half_activations = false;  // float32 ones may round to the type of half weights
};

// What a select function works with; lives as long as the device.
struct Tools {
  Driver& driver;
  Jit& jit;
  Libraries* libraries;  // null in the emulator: kernels of our own only
  DeviceOptions options;
  Weights* weights = nullptr;  // forms of constants that are packed for the device; like libraries
  const void* user = nullptr;  // of the weights
};

// Those that ask a library first call the *_kernel function when none will do.
Selection select_matmul(const MatMul& prim, const SelectRequest& request, const Tools& tools);
Selection select_conv(const Conv& prim, const SelectRequest& request, const Tools& tools);
Selection select_attention(const Attention& prim, const SelectRequest& request, const Tools& tools);
Selection select_matmul_kernel(const MatMul& prim, const SelectRequest& request,
                               const Tools& tools);
Selection select_matmul_dequant(const MatMul& prim, const SelectRequest& request,
                                const Tools& tools);
Selection select_conv_kernel(const Conv& prim, const SelectRequest& request, const Tools& tools);
Selection select_attention_kernel(const Attention& prim, const SelectRequest& request,
                                  const Tools& tools);

Selection select_region(const Region& prim, const SelectRequest& request, const Tools& tools);
Selection select_reduce(const Reduce& prim, const SelectRequest& request, const Tools& tools);
Selection select_cumulate(const Cumulate& prim, const SelectRequest& request, const Tools& tools);
Selection select_pool(const Pool& prim, const SelectRequest& request, const Tools& tools);
Selection select_softmax(const Softmax& prim, const SelectRequest& request, const Tools& tools);
Selection select_norm(const Norm& prim, const SelectRequest& request, const Tools& tools);
Selection select_gather(const Gather& prim, const SelectRequest& request, const Tools& tools);
Selection select_scatter(const Scatter& prim, const SelectRequest& request, const Tools& tools);
Selection select_move(const Move& prim, const SelectRequest& request, const Tools& tools);
Selection select_resize(const Resize& prim, const SelectRequest& request, const Tools& tools);
Selection select_sort(const Sort& prim, const SelectRequest& request, const Tools& tools);
Selection select_non_max_suppression(const NonMaxSuppression& prim, const SelectRequest& request,
                                     const Tools& tools);
Selection select_random(const Random& prim, const SelectRequest& request, const Tools& tools);
Selection select_recurrent(const Recurrent& prim, const SelectRequest& request,
                           const Tools& tools);
Selection select_fft(const Fft& prim, const SelectRequest& request, const Tools& tools);
Selection select_map(const Map& prim, const SelectRequest& request, const Tools& tools);

// What `force` may ask for, the fastest first, the one that never refuses last.
std::span<const std::string_view> rungs();

// Any primitive, by the function of its own.
Selection select(const SelectRequest& request, const Tools& tools);

}  // namespace rlx::cuda
