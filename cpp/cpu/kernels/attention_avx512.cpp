// Attention for AVX-512 vectors.
#include "cpu/kernels/attention_body.h"

namespace rlx::cpu {

const AttentionBlock attention_avx512 = attending::by_type<64>;

}  // namespace rlx::cpu
