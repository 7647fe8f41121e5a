// Poison and canaries around the blocks of a segment's plan.
#include "exec/canary.h"

#include <algorithm>
#include <cstring>

#include "exec/bind.h"

namespace rlx {
namespace {

constexpr std::byte canary{0xC5}, poison{0xFF};  // 0xFF... is NaN in every float type of ONNX

}  // namespace

void MemoryCheck::before(size_t t) const {
  for (size_t b = 0; b < plan_.storage.blocks.size(); ++b) {
    const plan::Block& block = plan_.storage.blocks[b];
    if (block.first != int32_t(t) || block.bytes == 0) continue;
    std::byte* at = base_ + plan_.storage.offsets[b];
    std::fill_n(at, block.bytes, poison);
    std::fill_n(at + block.bytes, canary_bytes, canary);
  }
}

void MemoryCheck::after(size_t t) const {
  for (size_t b = 0; b < plan_.storage.blocks.size(); ++b) {
    const plan::Block& block = plan_.storage.blocks[b];
    if (block.first > int32_t(t) || block.last < int32_t(t) || block.bytes == 0) continue;
    const std::byte* end = base_ + plan_.storage.offsets[b] + block.bytes;
    if (std::any_of(end, end + canary_bytes, [](std::byte x) { return x != canary; })) {
      throw Error(ErrorKind::internal, "a step wrote beyond the block at offset " +
                                           std::to_string(plan_.storage.offsets[b]));
    }
  }
}

}  // namespace rlx
