// Attention for AVX2 vectors.
#include "cpu/kernels/attention_body.h"

namespace rlx::cpu {

const AttentionBlock attention_avx2 = attending::by_type<32>;

}  // namespace rlx::cpu
