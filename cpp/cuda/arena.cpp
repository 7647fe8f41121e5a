// Reserves the device's memory size in addresses and maps memory there on growth, so that
// recorded graphs, which hold addresses, stay valid.
#include "cuda/arena.h"

#include <algorithm>
#include <vector>

namespace rlx::cuda {
namespace {

class MappedArena final : public Arena {
 public:
  explicit MappedArena(std::shared_ptr<Driver> driver)
      : driver_(std::move(driver)), granule_(driver_->granularity()),
        reserved_(round_up(driver_->info().memory_bytes)),
        base_(static_cast<std::byte*>(driver_->reserve(reserved_))) {}
  ~MappedArena() override {
    for (const Piece& piece : pieces_) driver_->unmap(base_ + piece.at, piece.bytes);
    driver_->unreserve(base_, reserved_);
  }
  MappedArena(const MappedArena&) = delete;
  MappedArena& operator=(const MappedArena&) = delete;

  std::byte* base() override { return base_; }
  size_t size() const override { return size_; }

  void grow(size_t bytes) override {
    if (bytes <= size_) return;
    if (bytes > reserved_) {
      throw Error(ErrorKind::memory_limit, "the arena would be larger than the GPU's memory")
          .expected_got("at most " + std::to_string(reserved_) + " bytes", std::to_string(bytes));
    }
    // Few pieces: mapping costs 0.3 ms whatever the size.
    const size_t wanted = std::min(round_up(std::max(bytes, size_ + size_ / 4)), reserved_);
    const size_t more = wanted - size_;
    driver_->map(base_ + size_, more);
    pieces_.push_back({size_, more});
    size_ = wanted;
  }

 private:
  struct Piece {
    size_t at, bytes;
  };
  size_t round_up(size_t bytes) const { return (bytes + granule_ - 1) / granule_ * granule_; }

  const std::shared_ptr<Driver> driver_;
  const size_t granule_, reserved_;
  std::byte* const base_;
  size_t size_ = 0;
  std::vector<Piece> pieces_;
};

}  // namespace

std::unique_ptr<Arena> make_arena(std::shared_ptr<Driver> driver) {
  return std::make_unique<MappedArena>(std::move(driver));
}

}  // namespace rlx::cuda
