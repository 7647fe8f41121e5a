// The memory planner: no two blocks in use together overlap, and the arena is close to the bound.
#include "plan/memory.h"

#include <numeric>
#include <random>

#include "plan/storage.h"
#include "tests/cpp/check.h"

namespace rlx::test {
namespace {

using namespace plan;

bool overlap(size_t a, size_t a_bytes, size_t b, size_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

bool together(const Block& a, const Block& b) { return a.first <= b.last && b.first <= a.last; }

// Throws when two blocks that live together, or a block and a reservation, share bytes.
void check_disjoint(std::span<const Block> blocks, std::span<const Reserved> reserved,
                    const Placement& got, size_t gap) {
  for (size_t i = 0; i < blocks.size(); ++i) {
    const Block& a = blocks[i];
    check_equal(got.offsets[i] % alignment, size_t{0});
    check(got.offsets[i] + a.bytes + (a.bytes ? gap : 0) <= got.bytes, "beyond the arena");
    for (size_t j = 0; j < i; ++j) {
      const Block& b = blocks[j];
      if (!a.bytes || !b.bytes || !together(a, b)) continue;
      check(!overlap(got.offsets[i], a.bytes + gap, got.offsets[j], b.bytes + gap),
            "blocks " + std::to_string(i) + " and " + std::to_string(j) + " overlap");
    }
    for (const Reserved& r : reserved) {
      if (!a.bytes || !together(a, r.block)) continue;
      check(!overlap(got.offsets[i], a.bytes + gap, r.offset, r.block.bytes), "in a reservation");
    }
  }
}

std::vector<Block> random_blocks(std::mt19937& random, int count, int steps, int longest) {
  std::vector<Block> blocks;
  for (int i = 0; i < count; ++i) {
    const int first = int(random() % unsigned(steps));
    const int last = std::min(steps, first + int(random() % unsigned(longest)));
    blocks.push_back({random() % 8 == 0 ? 0 : 1 + random() % 5000, first, last});
  }
  return blocks;
}

const Test never_overlap{"memory: blocks in use together never overlap", [] {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const auto blocks = random_blocks(random, 1 + round / 2, 40, 1 + round % 20);
    std::vector<Reserved> reserved;
    size_t at = 0;
    for (int i = 0; i < round % 4; ++i) {
      reserved.push_back({{random() % 3000, 0, int32_t(random() % 40)}, at});
      at += aligned(reserved.back().block.bytes) + alignment * (random() % 30);
    }
    const size_t gap = round % 2 ? 64 : 0;
    const Placement got = place(blocks, reserved, gap);
    check_disjoint(blocks, reserved, got, gap);
    check(got.bytes >= lower_bound(blocks, reserved, gap), "below the lower bound");
  }
}};

const Test near_bound{"memory: random nets need little more than the bound", [] {
  std::mt19937 random(2);
  double worst = 0, sum = 0;
  for (int round = 0; round < 100; ++round) {
    const auto blocks = random_blocks(random, 100, 60, 6);
    const double ratio = double(place(blocks, {}).bytes) / double(lower_bound(blocks, {}));
    worst = std::max(worst, ratio), sum += ratio;
  }
  check(worst < 1.35 && sum / 100 < 1.1,
        "worst " + std::to_string(worst) + ", mean " + std::to_string(sum / 100));
}};

const Test chain_alternates{"memory: a chain of equal tensors needs two", [] {
  std::vector<Block> blocks;
  for (int t = 0; t < 20; ++t) blocks.push_back({1000, t, t + 1});
  check_equal(place(blocks, {}).bytes, 2 * aligned(1000));
}};

// A net as lay_out takes it: node t reads `reads` and writes value t + 1 over the given inputs.
struct Chain {
  std::vector<StoredValue> values;
  std::vector<std::vector<int32_t>> reads, writes;
  std::vector<std::vector<InPlacePair>> pairs;

  Storage lay_out_it(size_t gap = 0) const {
    std::vector<NodeUse> nodes;
    for (size_t t = 0; t < reads.size(); ++t) nodes.push_back({reads[t], writes[t], pairs[t], 0});
    return lay_out(values, nodes, {}, gap);
  }
};

Chain elementwise_chain(int length) {
  Chain chain;
  chain.values.push_back({256, true});
  for (int t = 0; t < length; ++t) {
    chain.values.push_back({256});
    chain.reads.push_back({t});
    chain.writes.push_back({t + 1});
    chain.pairs.push_back({{0, 0}});
  }
  return chain;
}

const Test in_place_chain{"storage: an elementwise chain runs in one block", [] {
  const Storage got = elementwise_chain(5).lay_out_it();
  check_equal(got.blocks.size(), size_t{1});
  check_equal(got.blocks[0].last, 4);
  check(!got.in_place[0], "the input lies outside");
  check(got.in_place[1] && got.in_place[4]);
}};

const Test in_place_needs_death{"storage: no output over an input that is read again", [] {
  Chain chain = elementwise_chain(4);
  chain.reads[3].push_back(1);  // value 1 is read by node 3 too
  chain.pairs[3].push_back({1, 0});
  const Storage got = chain.lay_out_it();
  check(!got.in_place[1] && got.in_place[2] && got.in_place[3]);
  check(got.block_of[2] != got.block_of[1]);
  Chain kept = elementwise_chain(3);
  kept.values[1].kept = true;
  check(!kept.lay_out_it().in_place[1], "value 1 is read after the segment");
}};

const Test in_place_same_value_twice{"storage: an input also read with an offset is kept", [] {
  Chain chain = elementwise_chain(3);
  chain.reads[1].push_back(1);  // read 1 of the same value has no permission
  check(!chain.lay_out_it().in_place[1]);
  chain.pairs[1].push_back({1, 0});
  check(chain.lay_out_it().in_place[1]);
}};

const Test one_taker{"storage: two outputs cannot take one input", [] {
  Chain chain = elementwise_chain(2);
  chain.values.push_back({256});
  chain.writes[1].push_back(3);
  chain.pairs[1].push_back({0, 1});
  const Storage got = chain.lay_out_it();
  check(got.in_place[1] && got.block_of[2] != got.block_of[3]);
}};

const Test workspace_is_planned{"storage: workspaces and unread outputs are placed too", [] {
  const std::vector<StoredValue> values{{100, true}, {100}, {100}};
  const std::vector<int32_t> reads{0}, writes{1, 2};
  const std::vector<NodeUse> nodes{{reads, writes, {}, 4096}};
  const Storage got = lay_out(values, nodes, {});
  check_equal(got.blocks.size(), size_t{3});
  check_equal(got.bytes, 4096 + 2 * aligned(100));
  check_disjoint(got.blocks, {}, {got.offsets, got.bytes}, 0);
}};

}  // namespace
}  // namespace rlx::test
