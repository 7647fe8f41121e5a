// Which Moves of a segment are no copies: all that read them take strides. A pure function.
#pragma once

#include <optional>
#include <vector>

#include "exec/facts.h"
#include "exec/numbers.h"
#include "exec/plan.h"
#include "exec/value.h"

namespace rlx {

class Views {
 public:
  Views(const Facts& facts, size_t stage, Numbers numbers);

  // Node t's output among the elements of another value; null when it is computed.
  const View* made_by(size_t t) const {
    return t < made_.size() && made_[t] ? &*made_[t] : nullptr;
  }
  // v, if its bytes are a view's: itself one or under another shape.
  std::optional<View> of(ValueId v) const;

 private:
  struct Reader {
    size_t node, slot;
    ValueId value;  // what it reads: the root or an alias
  };

  bool may_be_view(const Node& node) const;
  bool all_take_strides(const std::vector<Reader>& readers,
                        const std::vector<bool>& candidates) const;
  std::optional<View> view_of(const Node& move) const;
  bool suits(const View& view, const Node& move, const std::vector<Reader>& readers) const;

  const Facts& facts_;
  size_t stage_;
  Numbers numbers_;
  std::vector<std::optional<View>> made_;  // of each node
  std::vector<int32_t> maker_;             // of each root: the node whose view it is, or -1
};

// The strides that give `to` the elements of a tensor of shape `from` and these strides, in
// order; none when they lie in no such way.
std::optional<Dims> reshaped_strides(const Dims& from, const Dims& strides, const Dims& to);

// How many elements lie from the first to the last one, both included.
int64_t reach(const Dims& shape, const Dims& strides);
// A dense tensor of the elements of `source`, which is on the host.
Tensor gathered(const Tensor& source, const Dims& shape, const Dims& strides);

}  // namespace rlx
