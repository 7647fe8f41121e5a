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
};

class PrimitiveBody : public StepBody {
 public:
  // Compiles the primitive for `threads`; runs use as many.
  PrimitiveBody(const PrimitiveDesc& desc, std::vector<Argument> arguments, int threads);
  std::unique_ptr<StepState> make_state() const override;
  void run(const RunArgs& args) const override;

 private:
  Primitive primitive_;
  std::vector<Argument> arguments_;
  int threads_;
};

Attributes new_attributes();  // scratchpad from the user, no post-ops

// Appends the primitive's scratchpad at workspace offset `at`, if it wants one; gives the new end.
size_t add_scratchpad(const PrimitiveDesc& desc, size_t at, std::vector<Argument>& arguments);

// A primitive that copies one format into another.
PrimitiveDesc reorder_desc(const MemoryDesc& from, const MemoryDesc& to);

// A weight in the format that a primitive wants: packed once when it is constant, otherwise by a
// step that is put in front, into the workspace. `given` describes the operand as it is.
Place packed_weight(const SelectRequest& request, int operand, const MemoryDesc& given,
                    const MemoryDesc& wanted, Selection& selection);

}  // namespace rlx::cpu::onednn
