// What a Program says before any dim is known: who defines and last reads each value, which
// symbols become known when, which outputs can be written in place. Made once, shared.
#pragma once

#include <functional>
#include <vector>

#include "core/small_vector.h"

#include "exec/strings.h"
#include "program/program.h"

namespace rlx {

// Stages are numbered from 0; inputs and constants are there "before" stage 0.
constexpr int32_t before = -1;

void for_each_read(const Stage& stage, const std::function<void(ValueId)>& visit);
void for_each_written(const Stage& stage, const std::function<void(ValueId)>& visit);

// The programs of a stage, in order.
std::vector<ProgramPtr> programs_of(const Stage& stage);

struct Facts {
  // Strings of constants are entered into `strings`, which children share.
  Facts(ProgramPtr program, StringTable& strings);

  ProgramPtr program;
  std::vector<Constant> constants;         // string constants hold ids of the shared table
  std::vector<ValueId> root;               // of each value: the value whose bytes it has
  std::vector<int32_t> defined_in;         // of each root: its stage, or `before`
  std::vector<int32_t> last_read_in;       // of each root: stage; stages.size() for a late copy
  std::vector<int32_t> input_at;           // of each root: its position among inputs, or -1
  std::vector<Dims> input_dims;            // of each input: static dims, -1 for the others
  std::vector<bool> for_nodes, for_host;   // of each root: who reads it, here or in a subgraph
  std::vector<int32_t> direct_output;      // of each root: the output written to, or -1
  std::vector<bool> copied;                // of each output: copied out at the end
  std::vector<int32_t> input_symbols;      // known before the first stage
  std::vector<std::vector<int32_t>> stage_symbols;  // known once the stage has run
  std::vector<bool> varying;               // of each expression: under a capacity symbol
  bool has_capacity = false;
  bool uses_strings = false;               // in this program or a child
  std::vector<int32_t> state_of;           // of each root: index of its state pair, or -1
  std::vector<ProgramPtr> children;        // programs of its stages, in order
  std::vector<int32_t> first_child;        // of each stage: index into children

  const Value& value(ValueId v) const { return program->values[size_t(v)]; }
  bool is_constant(ValueId v) const { return value(root[size_t(v)]).constant >= 0; }
  const Constant& constant(ValueId v) const {
    return constants[size_t(value(root[size_t(v)]).constant)];
  }
  // Whether the node's sizes may change from run to run within a plan.
  bool depends_on_capacity(const Node& node) const;
  bool is_tensor(ValueId v) const { return value(v).kind == ValueKind::tensor; }
  const Segment* segment(size_t stage) const {
    return std::get_if<Segment>(&program->stages[stage]);
  }

 private:
  void enter_strings(StringTable& strings);
  void follow_stages();
  void sort_symbols();
  void place_outputs(const std::vector<int32_t>& known_after);
  void mark_states();
};

}  // namespace rlx
