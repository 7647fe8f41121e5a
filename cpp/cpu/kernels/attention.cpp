// What every instruction set of attention shares: the size of its scratch.
#include "cpu/kernels/attention.h"

#include <algorithm>

namespace rlx::cpu {

size_t attention_scratch(const AttentionShape& s) {
  const int64_t ld = (s.value_depth + 31) / 32 * 32;
  const int64_t widened = std::max(key_block * ld, s.depth);  // of half values, or one key
  return size_t((query_block + key_block) * s.depth + query_block * (key_block + ld + 2) + widened +
                63) / 64 * 64;
}

}  // namespace rlx::cpu
