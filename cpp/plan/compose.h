// Builds one Selection out of parts that pass temporaries through the workspace.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "backend.h"
#include "plan/memory.h"

namespace rlx::plan {

// Where an operand's bytes are when a step runs.
struct Place {
  enum class Kind : uint8_t { absent, operand, workspace, packed };
  static Place absent() { return {Kind::absent, 0, nullptr}; }
  static Place operand(size_t index) { return {Kind::operand, index, nullptr}; }
  static Place workspace(size_t offset) { return {Kind::workspace, offset, nullptr}; }
  static Place packed(std::shared_ptr<const void> bytes) {
    return {Kind::packed, 0, std::move(bytes)};
  }
  void* address(const RunArgs& args) const;

  Kind kind;
  size_t at;  // index into RunArgs::operands, or offset into the workspace
  std::shared_ptr<const void> bytes;
};

// How a device selects one primitive.
using SelectFunction = std::function<Selection(const SelectRequest&)>;

class Composer {
 public:
  // Workspace that lives as long as the whole Selection runs.
  Place reserve(size_t bytes);
  // Appends a part whose operands (inputs, then outputs) are at `operands`. The workspaces of
  // parts overlap: they run one after the other.
  void add(Selection part, std::vector<Place> operands);
  // Appends an epilogue: load 0 is `product`, the loads after it the node's inputs from
  // `first_extra` on, and it writes the node's outputs.
  void add_epilogue(const SelectFunction& select, const SelectRequest& request,
                    const RegionPtr& region, size_t first_extra, const TensorDesc& product,
                    const Place& at);
  // Call once, last: places the parts' workspace behind what was reserved.
  Selection finish(std::string rung, std::string reason);

 private:
  struct Part {
    Selection selection;
    std::vector<Place> operands;
  };
  std::vector<Part> parts_;
  size_t reserved_ = 0;
};

}  // namespace rlx::plan
