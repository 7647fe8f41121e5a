// Packs constants and gives the mapped pages behind them back to the system.
#include "exec/packs.h"

#include <sys/mman.h>
#include <unistd.h>

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

}  // namespace

std::shared_ptr<const void> Packs::get(const Constant& constant, const std::string& format,
                                       size_t bytes, const std::function<void(void*)>& fill) {
  std::lock_guard lock(mutex_);
  auto& packed = packed_[Key{constant.data, format, bytes}];
  if (packed) return packed;
  const std::shared_ptr<void> memory = allocate(bytes);
  fill(memory.get());
  if (constant.droppable) drop_pages(constant);
  ++count_;
  bytes_ += int64_t(bytes);
  return packed = memory;
}

}  // namespace rlx
