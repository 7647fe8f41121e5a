// A step that executes one oneDNN primitive on operands, workspace and packed constants.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend.h"
#include "cpu/onednn/handles.h"
#include "cpu/select/compose.h"

namespace rlx::cpu::onednn {

struct Argument {
  int name;  // DNNL_ARG_*
  MemoryDesc desc;
  Place place;
  size_t offset = 0;  // bytes behind the place
};

using SharedPrimitive = std::shared_ptr<const Primitive>;
SharedPrimitive make_primitive(const PrimitiveDesc& desc);

class PrimitiveBody : public StepBody {
 public:
  PrimitiveBody(SharedPrimitive primitive, std::vector<Argument> arguments)
      : primitive_(std::move(primitive)), arguments_(std::move(arguments)) {}
  std::unique_ptr<StepState> make_state() const override;
  void run(const RunArgs& args) const override { run(args, 0); }
  // With the scratchpad `scratch_shift` bytes behind its place.
  void run(const RunArgs& args, size_t scratch_shift) const;

 private:
  SharedPrimitive primitive_;
  std::vector<Argument> arguments_;
};

// Primitives that do not depend on each other, side by side on the team.
class PartsBody : public StepBody {
 public:
  // Each thread's scratchpads are `scratch` bytes apart.
  PartsBody(std::vector<PrimitiveBody> parts, size_t scratch)
      : parts_(std::move(parts)), scratch_(scratch) {}
  std::unique_ptr<StepState> make_state() const override;
  void run(const RunArgs& args) const override;

 private:
  std::vector<PrimitiveBody> parts_;
  size_t scratch_;
};

Attributes new_attributes();  // scratchpad from the user, no post-ops

// Appends the primitive's scratchpad at workspace offset `at`, if it wants one; gives the new end.
size_t add_scratchpad(const PrimitiveDesc& desc, size_t at, std::vector<Argument>& arguments);

// A primitive that copies one format into another.
PrimitiveDesc reorder_desc(const MemoryDesc& from, const MemoryDesc& to);

// A weight in the format that a primitive wants: packed once when it is constant, otherwise by a
// step that is put in front, into the workspace. `given` describes the operand as it is, in
// float32; a constant of a half type is widened.
Place packed_weight(const SelectRequest& request, int operand, const MemoryDesc& given,
                    const MemoryDesc& wanted, Selection& selection);

}  // namespace rlx::cpu::onednn
