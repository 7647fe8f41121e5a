// Depthwise convolution for AVX2 vectors.
#include "cpu/kernels/conv_depthwise_body.h"

namespace rlx::cpu {

const DepthwiseTable depthwise_table_avx2 = depthwise::table<32>();

}  // namespace rlx::cpu
