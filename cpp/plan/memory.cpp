// Best-fit placement of intervals, the largest first.
#include "plan/memory.h"

#include <algorithm>
#include <numeric>

namespace rlx::plan {
namespace {

struct Placed {
  size_t begin, end;
  int32_t first, last;
};

bool together(const Placed& a, const Block& b) { return a.first <= b.last && b.first <= a.last; }

// Where `block` fits best between those of `placed` (sorted by begin) that live with it.
size_t best_gap(const std::vector<Placed>& placed, const Block& block, size_t bytes) {
  size_t free_from = 0, best = 0, best_size = SIZE_MAX;
  for (const Placed& other : placed) {
    if (!together(other, block)) continue;
    if (other.begin >= free_from + bytes && other.begin - free_from < best_size) {
      best = free_from, best_size = other.begin - free_from;
    }
    free_from = std::max(free_from, other.end);
  }
  return best_size == SIZE_MAX ? free_from : best;
}

Placement place_in_order(std::span<const Block> blocks, std::span<const Reserved> reserved,
                         size_t gap, const std::vector<uint32_t>& order) {
  std::vector<Placed> placed;
  placed.reserve(blocks.size() + reserved.size());
  Placement result{std::vector<size_t>(blocks.size()), 0};
  const auto add = [&](size_t begin, size_t bytes, const Block& block) {
    const Placed one{begin, begin + bytes, block.first, block.last};
    const auto less = [](const Placed& a, const Placed& b) { return a.begin < b.begin; };
    placed.insert(std::upper_bound(placed.begin(), placed.end(), one, less), one);
    result.bytes = std::max(result.bytes, one.end);
  };
  for (const Reserved& r : reserved) add(r.offset, aligned(r.block.bytes + gap), r.block);
  for (uint32_t i : order) {
    const size_t bytes = aligned(blocks[i].bytes + gap);
    if (blocks[i].bytes == 0) continue;  // an empty tensor: any address will do
    result.offsets[i] = best_gap(placed, blocks[i], bytes);
    add(result.offsets[i], bytes, blocks[i]);
  }
  return result;
}

}  // namespace

size_t lower_bound(std::span<const Block> blocks, std::span<const Reserved> reserved, size_t gap) {
  std::vector<std::pair<int32_t, int64_t>> changes;
  size_t highest_reserved = 0;
  const auto add = [&](const Block& b) {
    const auto bytes = int64_t(aligned(b.bytes + gap));
    if (b.bytes != 0) changes.insert(changes.end(), {{b.first, bytes}, {b.last + 1, -bytes}});
  };
  for (const Block& b : blocks) add(b);
  for (const Reserved& r : reserved) {
    add(r.block);
    highest_reserved = std::max(highest_reserved, r.offset + aligned(r.block.bytes + gap));
  }
  std::sort(changes.begin(), changes.end());  // at one step, what ends comes before what begins
  int64_t now = 0, most = 0;
  for (const auto& [step, bytes] : changes) most = std::max(most, now += bytes);
  return std::max(size_t(most), highest_reserved);
}

Placement place(std::span<const Block> blocks, std::span<const Reserved> reserved, size_t gap) {
  std::vector<uint32_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto life = [&](uint32_t i) { return int64_t(blocks[i].last) - blocks[i].first + 1; };
  const auto by_size = [&](uint32_t a, uint32_t b) {
    if (blocks[a].bytes != blocks[b].bytes) return blocks[a].bytes > blocks[b].bytes;
    return life(a) != life(b) ? life(a) > life(b) : a < b;
  };
  const auto by_area = [&](uint32_t a, uint32_t b) {
    const double x = double(blocks[a].bytes) * double(life(a));
    const double y = double(blocks[b].bytes) * double(life(b));
    return x != y ? x > y : a < b;
  };
  std::sort(order.begin(), order.end(), by_size);
  Placement best = place_in_order(blocks, reserved, gap, order);
  if (best.bytes > lower_bound(blocks, reserved, gap)) {
    std::sort(order.begin(), order.end(), by_area);
    Placement other = place_in_order(blocks, reserved, gap, order);
    if (other.bytes < best.bytes) best = std::move(other);
  }
  return best;
}

}  // namespace rlx::plan
