// Reserves the machine's memory size in addresses and backs pages of it on demand.
#include "cpu/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace rlx::cpu {
namespace {

constexpr size_t granule = size_t{2} << 20;  // a huge page

size_t round_up(size_t bytes) { return (bytes + granule - 1) / granule * granule; }

[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorKind::memory_limit, what);
}

class ReservedArena final : public Arena {
 public:
  ReservedArena() {
    const size_t memory = size_t(sysconf(_SC_PHYS_PAGES)) * size_t(sysconf(_SC_PAGESIZE));
    // Limits on address space may refuse it all: what is left still serves small models.
    for (reserved_ = round_up(memory); reserved_ >= granule; reserved_ = round_up(reserved_ / 4)) {
      void* p = mmap(nullptr, reserved_ + granule, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (p != MAP_FAILED) {
        mapping_ = p;
        base_ = reinterpret_cast<std::byte*>(round_up(reinterpret_cast<uintptr_t>(p)));
        return;
      }
      if (reserved_ == granule) break;
    }
    fail("no address space for the arena: " + std::string(std::strerror(errno)));
  }

  ~ReservedArena() override { munmap(mapping_, reserved_ + granule); }
  ReservedArena(const ReservedArena&) = delete;
  ReservedArena& operator=(const ReservedArena&) = delete;

  std::byte* base() override { return base_; }
  size_t size() const override { return size_; }

  void grow(size_t bytes) override {
    if (bytes <= size_) return;
    const size_t wanted = round_up(bytes);
    if (wanted < bytes || wanted > reserved_) {
      fail("an arena of " + std::to_string(bytes) + " bytes was asked for, " +
           std::to_string(reserved_) + " bytes of address space are reserved");
    }
    if (mprotect(base_ + size_, wanted - size_, PROT_READ | PROT_WRITE) != 0) {
      fail("the arena cannot grow to " + std::to_string(wanted) + " bytes: " +
           std::strerror(errno));
    }
    madvise(base_ + size_, wanted - size_, MADV_HUGEPAGE);  // a hint: may fail
    size_ = wanted;
  }

 private:
  void* mapping_ = nullptr;
  std::byte* base_ = nullptr;
  size_t reserved_ = 0, size_ = 0;
};

}  // namespace

std::unique_ptr<Arena> make_arena() { return std::make_unique<ReservedArena>(); }

}  // namespace rlx::cpu
