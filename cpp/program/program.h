// An immutable program: values, expressions, guards and stages. Written by python/rlx/emit,
// shared by every Plan and Context made from it; knows nothing of devices.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/dtype.h"
#include "core/expr.h"
#include "program/prims.h"

namespace rlx {

using ValueId = int32_t;  // -1: absent

enum class ValueKind : uint8_t { tensor, sequence, optional };

// Immutable bytes of a weight, kept alive by `owner`; `source` identifies equal weights. Those of
// 64 KiB or more may lie at any address: pack or copy them, or read them bytewise.
struct Constant {
  const void* data = nullptr;
  size_t bytes = 0;
  std::string source;
  std::shared_ptr<const void> owner;
  bool droppable = false;  // clean file mapping: pages may be given back once packed
};

struct Value {
  ValueKind kind = ValueKind::tensor;
  DType dtype = DType::none;
  std::vector<ExprId> shape;
  int32_t constant = -1;     // index into Program::constants
  ValueId alias_of = -1;     // the same bytes under another shape
  std::string name;
};

// What a number comes from once its value exists.
struct Symbol {
  enum class Kind : uint8_t { dim, element };
  Kind kind = Kind::dim;
  ValueId value = -1;
  int64_t index = 0;         // axis, or flat element
  bool is_float = false;
  ExprId upper = -1;         // bound from above, for planning before it is known
  ExprId capacity = -1;      // changes from run to run within it without a new plan
  std::string name;
};

struct Origin {
  std::string name, op, domain;
  int opset = 0;
  std::vector<std::string> also;
};

struct Guard {
  ExprId condition = -1;
  std::string message;
  int32_t origin = -1;
  std::string assumption;    // non-empty: another import can drop it
};

struct Node {
  Prim prim;
  std::vector<ValueId> inputs, outputs;
  int32_t origin = -1;
};

struct Program;
using ProgramPtr = std::shared_ptr<const Program>;

struct Segment {
  std::vector<Node> nodes;
};

struct If {
  ValueId condition = -1;
  ProgramPtr then_program, else_program;
  std::vector<ValueId> captures, outputs;
  int32_t origin = -1;
};

struct Loop {
  ValueId trip_count = -1, condition = -1;
  ProgramPtr body;
  std::vector<ValueId> carried, captures;  // initial values
  std::vector<ValueId> outputs;            // carried, then scans
  int32_t scans = 0;
  int32_t origin = -1;
};

struct Scan {
  ProgramPtr body;
  std::vector<ValueId> states, scan_inputs, captures;
  std::vector<ValueId> outputs;            // states, then scan outputs
  std::vector<int> input_axes, output_axes;
  std::vector<bool> input_reverse, output_reverse;
  int32_t origin = -1;
};

enum class SequenceKind : uint8_t {
  construct, empty, at, insert, erase, length, concat, split, optional, has_element, get_element
};

struct SequenceOp {
  SequenceKind kind{};
  int axis = 0;
  bool new_axis = false, keepdims = true;
  DType dtype = DType::none;
  std::vector<ValueId> inputs, outputs;
  int32_t origin = -1;
};

// Calls a named function of rlx/host with arrays; the only way back into Python.
struct Host {
  std::string function;
  std::shared_ptr<void> callable;          // a Python object, opaque here
  std::vector<ValueId> inputs, outputs;
  int32_t origin = -1;
};

using Stage = std::variant<Segment, If, Loop, Scan, SequenceOp, Host>;

// A growing past. Run with a State, output `output` continues input `input` along `axis` in one
// buffer that outlives the run: the producer (a Move that begins with the whole input, or a
// Scatter into it) then writes only what is new. Without a State it is an ordinary pair.
struct StatePair {
  int32_t input = -1, output = -1;  // positions in Program::inputs and outputs
  int32_t axis = 0;
};

struct Program {
  std::vector<ExprRow> exprs;
  std::vector<Symbol> symbols;
  std::vector<Guard> guards;
  std::vector<Value> values;
  std::vector<Constant> constants;
  // A string constant holds int64 indices into this. Children number alike: the table of a child
  // is the beginning of its parent's.
  std::vector<std::string> strings;
  std::vector<StatePair> states;
  std::vector<ValueId> inputs, outputs;
  std::vector<std::string> input_names, output_names;
  std::vector<Stage> stages;
  std::vector<Origin> origins;
};

// Throws Error(internal) naming what is inconsistent: ids, kinds, order of definition.
void verify(const Program& program);
std::string dump(const Program& program);

}  // namespace rlx
