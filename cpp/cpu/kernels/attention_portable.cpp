// Attention for any processor.
#include "cpu/kernels/attention_body.h"

namespace rlx::cpu {

const AttentionBlock attention_portable = attending::by_type<16>;

}  // namespace rlx::cpu
