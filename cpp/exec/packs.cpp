// Packs constants and gives the mapped pages behind them back to the system.
#include "exec/packs.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <new>

#include "exec/value.h"

namespace rlx {
namespace {

// The file still holds the bytes: a later reader of these pages gets them from there.
void drop_pages(const Constant& constant) {
  const auto page = uintptr_t(sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<uintptr_t>(constant.data) + page - 1) / page * page;
  const auto end = (reinterpret_cast<uintptr_t>(constant.data) + constant.bytes) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

// Products stream packed constants from memory: with small pages they wait for page tables too.
std::shared_ptr<void> allocate_packed(size_t bytes) {
  constexpr size_t huge = size_t{2} << 20;
  void* memory = nullptr;
  if (bytes < huge) return allocate(bytes);
  if (posix_memalign(&memory, huge, bytes) != 0) throw std::bad_alloc();
  madvise(memory, bytes / huge * huge, MADV_HUGEPAGE);  // a hint: may fail
  return {memory, [](void* p) { std::free(p); }};
}

}  // namespace

std::shared_ptr<const void> Packs::get(const Constant& constant, const std::string& format,
                                       size_t bytes, const std::function<void(void*)>& fill) {
  std::lock_guard lock(mutex_);
  auto& packed = packed_[Key{constant.data, format, bytes}];
  if (packed) return packed;
  const std::shared_ptr<void> memory = allocate_packed(bytes);
  fill(memory.get());
  if (constant.droppable) drop_pages(constant);
  ++count_;
  bytes_ += int64_t(bytes);
  return packed = memory;
}

void Packs::forget(const Constant& constant) {
  std::lock_guard lock(mutex_);
  std::erase_if(packed_, [&](const auto& entry) {
    const auto& [key, packed] = entry;
    const bool names = !constant.source.empty() &&
                       std::get<1>(key).find(constant.source) != std::string::npos;
    if (std::get<0>(key) != constant.data && !names) return false;
    bytes_ -= int64_t(std::get<2>(key));
    return true;
  });
}

}  // namespace rlx
