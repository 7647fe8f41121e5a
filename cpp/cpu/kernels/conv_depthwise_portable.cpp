// Depthwise convolution for baseline vectors.
#include "cpu/kernels/conv_depthwise_body.h"

namespace rlx::cpu {

const DepthwiseTable depthwise_table_portable = depthwise::table<16>();

}  // namespace rlx::cpu
