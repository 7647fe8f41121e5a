// Depthwise convolution for AVX-512 vectors.
#include "cpu/kernels/conv_depthwise_body.h"

namespace rlx::cpu {

const DepthwiseTable depthwise_table_avx512 = depthwise::table<64>();

}  // namespace rlx::cpu
