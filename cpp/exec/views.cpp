// Looks from the readers back: attention takes strides, so a Move that only it reads is a view.
#include "exec/views.h"

#include <algorithm>
#include <cstring>

namespace rlx {
namespace {

// Vector loads of readers begin at such addresses, relative to the value's own; the pass siblings
// counts on it (ALIGNMENT there).
constexpr int64_t view_alignment = 16;

bool takes_strides(const Prim& prim, size_t slot) {
  return std::holds_alternative<Attention>(prim) && slot < 3;
}

const Move* plain_move(const Node& node) {
  const auto* move = std::get_if<Move>(&node.prim);
  return move && move->mode == MoveMode::none && move->parts.size() == 1 ? move : nullptr;
}

}  // namespace

std::optional<Dims> reshaped_strides(const Dims& from, const Dims& strides, const Dims& to) {
  Dims made(to.size(), 1);
  size_t i = 0, j = 0;
  while (j < to.size()) {
    if (to[j] == 1) {
      ++j;
      continue;
    }
    // The smallest groups of axes on both sides with equally many elements.
    const size_t first = j;
    while (i < from.size() && from[i] == 1) ++i;
    if (i == from.size()) return std::nullopt;
    int64_t have = from[i], want = to[j++];
    int64_t innermost = strides[i++];
    while (have != want) {
      if (have < want) {
        while (i < from.size() && from[i] == 1) ++i;
        if (i == from.size() || innermost != from[i] * strides[i]) return std::nullopt;
        have *= from[i];
        innermost = strides[i++];
      } else {
        if (j == to.size()) return std::nullopt;
        want *= to[j++];
      }
    }
    int64_t stride = innermost;
    for (size_t k = j; k-- > first; stride *= to[k]) made[k] = stride;
  }
  // No coordinate but 0: what a dense tensor would have.
  for (size_t k = to.size(); k-- > 0;) {
    if (to[k] == 1) made[k] = k + 1 < to.size() ? made[k + 1] * to[k + 1] : 1;
  }
  return made;
}

int64_t reach(const Dims& shape, const Dims& strides) {
  int64_t last = 0;
  for (size_t k = 0; k < shape.size(); ++k) last += (shape[k] - 1) * strides[k];
  return last + 1;
}

Tensor gathered(const Tensor& source, const Dims& shape, const Dims& strides) {
  Tensor dense = make_tensor(source.dtype, shape);
  const size_t size = size_of(source.dtype);
  Dims index(shape.size(), 0);
  int64_t from = 0;
  for (int64_t i = 0; i < element_count(shape); ++i) {
    std::memcpy(static_cast<char*>(dense.data) + size_t(i) * size,
                static_cast<const char*>(source.data) + size_t(from) * size, size);
    for (size_t k = shape.size(); k-- > 0;) {
      from += strides[k];
      if (++index[k] < shape[k]) break;
      from -= strides[k] * shape[k];
      index[k] = 0;
    }
  }
  return dense;
}

Views::Views(const Facts& facts, size_t stage, Numbers numbers)
    : facts_(facts), stage_(stage), numbers_(numbers) {
  const std::vector<Node>& nodes = facts.segment(stage)->nodes;
  const auto reads_views = [](const Node& node) { return takes_strides(node.prim, 0); };
  if (std::ranges::none_of(nodes, reads_views)) return;
  std::vector<std::vector<Reader>> readers(facts.root.size());
  for (size_t t = 0; t < nodes.size(); ++t) {
    for (size_t slot = 0; slot < nodes[t].inputs.size(); ++slot) {
      const ValueId v = nodes[t].inputs[slot];
      if (v >= 0) readers[size_t(facts.root[size_t(v)])].push_back({t, slot, v});
    }
  }
  std::vector<bool> candidates(nodes.size(), false);
  for (size_t t = nodes.size(); t-- > 0;) {
    candidates[t] = may_be_view(nodes[t]) &&
                    all_take_strides(readers[size_t(nodes[t].outputs[0])], candidates);
  }
  made_.resize(nodes.size());
  maker_.assign(facts.root.size(), -1);
  for (size_t t = 0; t < nodes.size(); ++t) {
    if (!candidates[t]) continue;
    std::optional<View> view = view_of(nodes[t]);
    if (!view || !suits(*view, nodes[t], readers[size_t(nodes[t].outputs[0])])) continue;
    made_[t] = std::move(view);
    maker_[size_t(nodes[t].outputs[0])] = int32_t(t);
  }
}

std::optional<View> Views::of(ValueId v) const {
  if (v < 0 || maker_.empty()) return std::nullopt;
  const ValueId root = facts_.root[size_t(v)];
  if (maker_[size_t(root)] < 0) return std::nullopt;
  View view = *made_[size_t(maker_[size_t(root)])];
  if (v == root) return view;
  const std::optional<Dims> strides = reshaped_strides(
      dims_of(facts_.value(root), numbers_), view.strides, dims_of(facts_.value(v), numbers_));
  if (!strides) return std::nullopt;
  view.strides = *strides;
  return view;
}

// Whether it is a strided block of something that this segment computes into the arena, for
// readers within the segment.
bool Views::may_be_view(const Node& node) const {
  const auto inside = [&](ValueId root) {
    return facts_.defined_in[size_t(root)] == int32_t(stage_) &&
           facts_.direct_output[size_t(root)] < 0 && facts_.state_of[size_t(root)] < 0;
  };
  if (!plain_move(node) || facts_.depends_on_capacity(node)) return false;
  const ValueId x = facts_.root[size_t(node.inputs[0])], y = node.outputs[0];
  return inside(x) && inside(y) && facts_.last_read_in[size_t(y)] <= int32_t(stage_);
}

bool Views::all_take_strides(const std::vector<Reader>& readers,
                             const std::vector<bool>& candidates) const {
  const std::vector<Node>& nodes = facts_.segment(stage_)->nodes;
  return !readers.empty() && std::ranges::all_of(readers, [&](const Reader& r) {
    if (candidates[r.node]) return true;
    return takes_strides(nodes[r.node].prim, r.slot) &&
           !facts_.depends_on_capacity(nodes[r.node]);
  });
}

std::optional<View> Views::view_of(const Node& node) const {
  const MovePart& part = plain_move(node)->parts[0];
  const ValueId x = node.inputs[0];
  const Dims shape = dims_of(facts_.value(x), numbers_);
  const Dims result = dims_of(facts_.value(node.outputs[0]), numbers_);
  const std::optional<View> under = of(x);
  View view = under ? *under : View{facts_.root[size_t(x)], row_major(shape), 0};
  Dims strides;
  for (size_t k = 0; k < part.perm.size(); ++k) {
    const size_t axis = size_t(part.perm[k]);
    const auto number = [&](const std::vector<ExprId>& ids) {
      return numbers_.exact[size_t(ids[k])];
    };
    const Number start = number(part.starts), step = number(part.steps),
                 extent = number(part.extents), offset = number(part.offsets);
    if (!start.known || !step.known || !extent.known || !offset.known) return std::nullopt;
    if (offset.i != 0 || step.i <= 0 || extent.i != result[k] || extent.i <= 0 || start.i < 0 ||
        start.i + step.i * (extent.i - 1) >= shape[axis]) {
      return std::nullopt;
    }
    view.offset += start.i * view.strides[axis];
    strides.push_back(view.strides[axis] * step.i);
  }
  view.strides = strides;
  return view;
}

// Whether each reader can be told: rows of neighbours that begin aligned.
bool Views::suits(const View& view, const Node& move, const std::vector<Reader>& readers) const {
  const Value& value = facts_.value(move.outputs[0]);
  const auto size = int64_t(size_of(value.dtype));
  const std::vector<Node>& nodes = facts_.segment(stage_)->nodes;
  const Dims shape = dims_of(value, numbers_);
  return std::ranges::all_of(readers, [&](const Reader& r) {
    const Dims seen = dims_of(facts_.value(r.value), numbers_);
    const std::optional<Dims> strides = reshaped_strides(shape, view.strides, seen);
    if (!strides) return false;
    if (std::holds_alternative<Move>(nodes[r.node].prim)) return true;
    return (strides->back() == 1 || seen.back() == 1) && view.offset * size % view_alignment == 0;
  });
}

}  // namespace rlx
