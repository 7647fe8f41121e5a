// Memory that is opened while the card works, and closed to the host otherwise.
#include "emu/card.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>
#include <utility>

#include "core/error.h"

namespace rlx::emu {
namespace {

size_t whole_pages(size_t bytes) {
  static const auto page = size_t(sysconf(_SC_PAGESIZE));
  return (bytes + page) / page * page;
}

}  // namespace

Card::~Card() {
  for (const auto& [at, bytes] : mapped_) munmap(at, bytes);
}

void* Card::allocate(size_t bytes) {
  void* memory = reserve(whole_pages(bytes));
  map(memory, whole_pages(bytes));
  return memory;
}

void Card::free(void* memory) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = mapped_.find(static_cast<std::byte*>(memory));
  if (found == mapped_.end()) return;
  munmap(found->first, found->second);
  mapped_.erase(found);
}

void* Card::reserve(size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  return at;
}

void Card::unreserve(void* at, size_t bytes) noexcept { munmap(at, bytes); }

void Card::map(void* at, size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (mprotect(at, bytes, PROT_NONE) != 0) throw Error(ErrorKind::internal, "mprotect failed");
  mapped_[static_cast<std::byte*>(at)] = bytes;
}

void Card::unmap(void* at, size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  madvise(at, bytes, MADV_DONTNEED);
  mapped_.erase(static_cast<std::byte*>(at));
}

bool Card::holds(const void* p) {
  const std::lock_guard lock(mutex_);
  const auto* at = static_cast<const std::byte*>(p);
  auto found = mapped_.upper_bound(const_cast<std::byte*>(at));
  if (found == mapped_.begin()) return false;
  --found;
  return at < found->first + found->second;
}

std::shared_ptr<Line> Card::make_line() {
  const std::lock_guard lock(mutex_);
  std::erase_if(lines_, [](const auto& line) { return line.expired(); });
  auto line = std::make_shared<Line>();
  lines_.push_back(line);
  return line;
}

void Card::put(Line& line, std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  line.waiting.push_back({std::move(work), nullptr});
}

size_t Card::place_in(const Line& line) {
  const std::lock_guard lock(mutex_);
  return line.end();
}

void Card::wait(Line& line, std::shared_ptr<Line> other, size_t place) {
  const std::lock_guard lock(mutex_);
  line.waiting.push_back({nullptr, std::move(other), place});
}

void Card::finish(Line& line, size_t place) {
  const std::lock_guard lock(mutex_);
  protect(PROT_READ | PROT_WRITE);
  work_off(line, place);
  protect(PROT_NONE);
  if (wrong_) std::rethrow_exception(wrong_);
}

void Card::finish() {
  const std::lock_guard lock(mutex_);
  protect(PROT_READ | PROT_WRITE);
  for (const auto& held : lines_) {
    if (const auto line = held.lock()) work_off(*line, line->end());
  }
  protect(PROT_NONE);
  if (wrong_) std::rethrow_exception(wrong_);
}

void Card::work_off(Line& line, size_t place) {
  while (line.done < place && !line.waiting.empty()) {
    const Line::Item item = std::move(line.waiting.front());
    line.waiting.pop_front();
    ++line.done;
    try {
      if (item.work) item.work();
      else work_off(*item.other, item.place);
    } catch (...) {
      if (!wrong_) wrong_ = std::current_exception();
    }
  }
}

void Card::protect(int how) noexcept {
  for (const auto& [at, bytes] : mapped_) mprotect(at, bytes, how);
}

}  // namespace rlx::emu
