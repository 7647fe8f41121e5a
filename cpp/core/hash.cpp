// Hashes bytes eight at a time.
#include "core/hash.h"

#include <algorithm>
#include <cstring>

namespace rlx {

uint64_t hash_bytes(std::span<const std::byte> bytes, uint64_t seed) {
  seed = hash_combine(seed, bytes.size());
  while (!bytes.empty()) {
    uint64_t word = 0;
    const size_t taken = std::min(bytes.size(), sizeof(word));
    std::memcpy(&word, bytes.data(), taken);
    seed = hash_combine(seed, word);
    bytes = bytes.subspan(taken);
  }
  return seed;
}

}  // namespace rlx
