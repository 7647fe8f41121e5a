// Memory for tensors outside the arena.
#include "exec/value.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "plan/memory.h"

namespace rlx {

std::shared_ptr<void> allocate(size_t bytes) {
  void* memory = std::aligned_alloc(plan::alignment, plan::aligned(bytes + (bytes == 0)));
  if (memory == nullptr) throw std::bad_alloc();
  return {memory, [](void* p) { std::free(p); }};
}

Tensor make_tensor(DType dtype, Dims shape) {
  Tensor tensor{dtype, std::move(shape), nullptr, nullptr};
  tensor.owner = allocate(tensor.bytes());
  tensor.data = tensor.owner.get();
  return tensor;
}

Tensor copy_of(const Tensor& tensor) {
  Tensor copy = make_tensor(tensor.dtype, tensor.shape);
  if (const size_t bytes = tensor.bytes()) std::memcpy(copy.data, tensor.data, bytes);
  return copy;
}

}  // namespace rlx
