// A Device whose memory is the host's: what most of them share.
#include "backend.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "plan/memory.h"

namespace rlx {

std::unique_ptr<Queue> Device::make_queue(uint64_t) const { return nullptr; }

std::shared_ptr<const void> Device::upload(const Constant& constant) const {
  return {constant.owner, constant.data};
}

std::shared_ptr<void> Device::allocate(size_t bytes) const {
  void* memory = std::aligned_alloc(plan::alignment, plan::aligned(bytes + (bytes == 0)));
  if (memory == nullptr) throw std::bad_alloc();
  return {memory, [](void* p) { std::free(p); }};
}

void Device::copy(void* to, const void* from, size_t bytes) const {
  if (bytes) std::memcpy(to, from, bytes);
}

}  // namespace rlx
