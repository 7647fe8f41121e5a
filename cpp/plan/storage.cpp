// Lifetimes of blocks, and which outputs take over the block of a dying input.
#include "plan/storage.h"

#include <algorithm>

namespace rlx::plan {
namespace {

class Layout {
 public:
  Layout(std::span<const StoredValue> values, std::span<const NodeUse> nodes)
      : values_(values), nodes_(nodes), last_use_(values.size(), -1) {
    storage_.block_of.assign(values.size(), -1);
    storage_.workspace_block.assign(nodes.size(), -1);
    storage_.in_place.assign(nodes.size(), false);
    for (size_t t = 0; t < nodes.size(); ++t) {
      for (int32_t v : nodes[t].reads) touch(v, t);
      for (int32_t v : nodes[t].writes) touch(v, t);
    }
  }

  Storage finish(std::span<const Reserved> reserved, size_t gap) {
    for (size_t t = 0; t < nodes_.size(); ++t) {
      for (size_t i = 0; i < nodes_[t].writes.size(); ++i) write(t, i);
    }
    for (size_t t = 0; t < nodes_.size(); ++t) {
      if (nodes_[t].workspace == 0) continue;
      storage_.workspace_block[t] = int32_t(storage_.blocks.size());
      storage_.blocks.push_back({nodes_[t].workspace, int32_t(t), int32_t(t)});
    }
    Placement placement = place(storage_.blocks, reserved, gap);
    storage_.offsets = std::move(placement.offsets);
    storage_.bytes = placement.bytes;
    return std::move(storage_);
  }

 private:
  void touch(int32_t v, size_t t) {
    if (v >= 0) last_use_[size_t(v)] = int32_t(t);
  }

  void write(size_t t, size_t output) {
    const int32_t v = nodes_[t].writes[output];
    if (v < 0 || values_[size_t(v)].outside || storage_.block_of[size_t(v)] >= 0) return;
    const int32_t end = values_[size_t(v)].kept ? int32_t(nodes_.size()) : last_use_[size_t(v)];
    int32_t block = block_to_take(t, output, v);
    if (block >= 0) {
      storage_.in_place[t] = true;
      storage_.blocks[size_t(block)].last = end;
    } else {
      block = int32_t(storage_.blocks.size());
      storage_.blocks.push_back({values_[size_t(v)].bytes, int32_t(t), end});
    }
    storage_.block_of[size_t(v)] = block;
    written_by_.resize(storage_.blocks.size(), -1);
    written_by_[size_t(block)] = int32_t(t);
  }

  // The block of an input that dies at node t and that output may overwrite, or -1.
  int32_t block_to_take(size_t t, size_t output, int32_t v) const {
    const NodeUse& node = nodes_[t];
    for (const InPlacePair& pair : node.in_place) {
      if (size_t(pair.output) != output) continue;
      const int32_t input = node.reads[size_t(pair.input)];
      const int32_t block = input < 0 ? -1 : storage_.block_of[size_t(input)];
      if (block < 0 || values_[size_t(input)].kept) continue;
      const Block& b = storage_.blocks[size_t(block)];
      const bool dies = b.last == int32_t(t) && b.first < int32_t(t);
      const bool free = written_by_[size_t(block)] != int32_t(t);
      if (dies && free && b.bytes == values_[size_t(v)].bytes &&
          every_read_allows(node, output, block)) {
        return block;
      }
    }
    return -1;
  }

  // An input may be read twice, once in a way that forbids overwriting it.
  bool every_read_allows(const NodeUse& node, size_t output, int32_t block) const {
    for (size_t i = 0; i < node.reads.size(); ++i) {
      const int32_t v = node.reads[i];
      if (v < 0 || storage_.block_of[size_t(v)] != block) continue;
      const bool allowed = std::any_of(
          node.in_place.begin(), node.in_place.end(), [&](const InPlacePair& pair) {
            return size_t(pair.input) == i && size_t(pair.output) == output;
          });
      if (!allowed) return false;
    }
    return true;
  }

  std::span<const StoredValue> values_;
  std::span<const NodeUse> nodes_;
  std::vector<int32_t> last_use_;    // the last node that touches the value
  std::vector<int32_t> written_by_;  // the last node that wrote to the block
  Storage storage_;
};

}  // namespace

Storage lay_out(std::span<const StoredValue> values, std::span<const NodeUse> nodes,
                std::span<const Reserved> reserved, size_t gap) {
  return Layout(values, nodes).finish(reserved, gap);
}

}  // namespace rlx::plan
