// Walks a Program once for everything that does not depend on dims.
#include "exec/facts.h"

#include <algorithm>

#include "core/error.h"
#include "program/fields.h"

namespace rlx {
namespace {

template <class... F>
struct Overload : F... {
  using F::operator()...;
};

void each(const std::vector<ValueId>& values, const std::function<void(ValueId)>& visit) {
  for (ValueId v : values)
    if (v >= 0) visit(v);
}

[[noreturn]] void inconsistent(const std::string& what) {
  throw Error(ErrorKind::internal, "program: " + what);
}

bool mentions_strings(const Program& program) {
  const auto is_string = [](const Value& v) { return v.dtype == DType::string; };
  if (std::any_of(program.values.begin(), program.values.end(), is_string)) return true;
  for (const Stage& stage : program.stages)
    for (const ProgramPtr& child : programs_of(stage))
      if (mentions_strings(*child)) return true;
  return false;
}

// What a stage gives to the inputs of its subgraphs; -1 for what it makes for them.
std::vector<ValueId> given_by(const Stage& stage) {
  std::vector<ValueId> given;
  const auto add = [&](const std::vector<ValueId>& more) {
    given.insert(given.end(), more.begin(), more.end());
  };
  std::visit(Overload{[&](const If& s) { add(s.captures); },
                      [&](const Loop& s) { add({-1, -1}), add(s.carried), add(s.captures); },
                      [&](const Scan& s) {
                        add(s.states), add(std::vector<ValueId>(s.scan_inputs.size(), -1));
                        add(s.captures);
                      },
                      [](const auto&) {}},
             stage);
  return given;
}

// What a stage reads itself, on the host; -1 for what it lacks.
std::vector<ValueId> read_by_host(const Stage& stage) {
  return std::visit(Overload{[](const Segment&) { return std::vector<ValueId>(); },
                             [](const If& s) { return std::vector{s.condition}; },
                             [](const Loop& s) { return std::vector{s.trip_count, s.condition}; },
                             [](const Scan& s) { return s.scan_inputs; },
                             [](const auto& s) { return s.inputs; }},
                    stage);
}

// Of each root: who reads it, in this program or a subgraph.
struct Readers {
  explicit Readers(const Program& program)
      : nodes(program.values.size()), host(program.values.size()), program_(program) {
    for (const Symbol& symbol : program.symbols) {
      if (symbol.kind == Symbol::Kind::element) mark(host, symbol.value);
    }
    for (const Stage& stage : program.stages) {
      if (std::holds_alternative<Segment>(stage)) {
        for_each_read(stage, [&](ValueId v) { mark(nodes, v); });
      }
      for (ValueId v : read_by_host(stage)) mark(host, v);
      const std::vector<ValueId> given = given_by(stage);
      for (const ProgramPtr& child : programs_of(stage)) {
        const Readers inner(*child);
        for (size_t i = 0; i < given.size(); ++i) {
          const auto input = size_t(inner.root_of(child->inputs[i]));
          if (inner.nodes[input]) mark(nodes, given[i]);
          if (inner.host[input]) mark(host, given[i]);
        }
      }
    }
  }

  std::vector<bool> nodes, host;

 private:
  ValueId root_of(ValueId v) const {
    while (program_.values[size_t(v)].alias_of >= 0) v = program_.values[size_t(v)].alias_of;
    return v;
  }
  void mark(std::vector<bool>& read, ValueId v) const {
    if (v >= 0) read[size_t(root_of(v))] = true;
  }

  const Program& program_;
};

}  // namespace

std::vector<ProgramPtr> programs_of(const Stage& stage) {
  return std::visit(
      Overload{[](const If& s) { return std::vector{s.then_program, s.else_program}; },
               [](const Loop& s) { return std::vector{s.body}; },
               [](const Scan& s) { return std::vector{s.body}; },
               [](const auto&) { return std::vector<ProgramPtr>{}; }},
      stage);
}

void for_each_read(const Stage& stage, const std::function<void(ValueId)>& visit) {
  std::visit(Overload{[&](const Segment& s) {
                        for (const Node& node : s.nodes) each(node.inputs, visit);
                      },
                      [&](const If& s) { each({s.condition}, visit), each(s.captures, visit); },
                      [&](const Loop& s) {
                        each({s.trip_count, s.condition}, visit);
                        each(s.carried, visit), each(s.captures, visit);
                      },
                      [&](const Scan& s) {
                        each(s.states, visit), each(s.scan_inputs, visit);
                        each(s.captures, visit);
                      },
                      [&](const SequenceOp& s) { each(s.inputs, visit); },
                      [&](const Host& s) { each(s.inputs, visit); }},
             stage);
}

void for_each_written(const Stage& stage, const std::function<void(ValueId)>& visit) {
  std::visit(Overload{[&](const Segment& s) {
                        for (const Node& node : s.nodes) each(node.outputs, visit);
                      },
                      [&](const auto& s) { each(s.outputs, visit); }},
             stage);
}

Facts::Facts(ProgramPtr p, StringTable& strings) : program(std::move(p)) {
  const size_t count = program->values.size();
  root.resize(count);
  for (size_t v = 0; v < count; ++v) {
    ValueId r = ValueId(v);
    while (value(r).alias_of >= 0) r = value(r).alias_of;
    root[v] = r;
  }
  defined_in.assign(count, before);
  last_read_in.assign(count, before);
  direct_output.assign(count, -1);
  state_of.assign(count, -1);
  input_at.assign(count, -1);
  Readers readers(*program);
  for_nodes = std::move(readers.nodes), for_host = std::move(readers.host);
  for (size_t i = 0; i < program->inputs.size(); ++i) {
    const ValueId v = program->inputs[i];
    input_at[size_t(v)] = int32_t(i);
    Dims& dims = input_dims.emplace_back();
    for (ExprId id : value(v).shape) {
      const ExprRow& row = program->exprs[size_t(id)];
      dims.push_back(row.op == ExprOp::const_int ? row.i : -1);
    }
  }
  constants = program->constants;
  uses_strings = mentions_strings(*program);
  if (uses_strings) enter_strings(strings);
  follow_stages();
  sort_symbols();
  mark_states();
}

void Facts::enter_strings(StringTable& strings) {
  for (const Value& v : program->values) {
    if (v.constant < 0 || v.dtype != DType::string) continue;
    Constant& constant = constants[size_t(v.constant)];
    const auto* own = static_cast<const int64_t*>(program->constants[size_t(v.constant)].data);
    const auto ids = std::make_shared<std::vector<int64_t>>(constant.bytes / sizeof(int64_t));
    for (size_t i = 0; i < ids->size(); ++i) {
      (*ids)[i] = strings.id(program->strings.at(size_t(own[i])));
    }
    constant.data = ids->data();
    constant.owner = ids;
  }
}

void Facts::follow_stages() {
  for (size_t s = 0; s < program->stages.size(); ++s) {
    const Stage& stage = program->stages[s];
    for_each_read(stage, [&](ValueId v) { last_read_in[size_t(root[size_t(v)])] = int32_t(s); });
    for_each_written(stage, [&](ValueId v) {
      if (root[size_t(v)] != v) inconsistent("an alias is written: " + value(v).name);
      defined_in[size_t(v)] = int32_t(s);
    });
    first_child.push_back(int32_t(children.size()));
    for (ProgramPtr& child : programs_of(stage)) children.push_back(std::move(child));
  }
}

void Facts::sort_symbols() {
  const size_t stages = program->stages.size();
  stage_symbols.resize(stages);
  for (size_t i = 0; i < program->symbols.size(); ++i) {
    const Symbol& symbol = program->symbols[i];
    const ValueId r = root[size_t(symbol.value)];
    const int32_t stage = defined_in[size_t(r)];
    const bool of_segment = stage >= 0 && segment(size_t(stage)) != nullptr;
    if (of_segment && symbol.kind == Symbol::Kind::dim) {
      inconsistent("a dim of " + value(symbol.value).name + " is a symbol, but a segment makes it");
    }
    if (symbol.kind == Symbol::Kind::dim && r != symbol.value) {
      inconsistent("a dim of the alias " + value(symbol.value).name + " is a symbol");
    }
    if (stage == before && input_at[size_t(r)] < 0 && value(r).constant < 0) {
      inconsistent("a symbol stands for a value that nothing defines: " + value(r).name);
    }
    // Its element is read after the stage: nothing may reuse its memory until then.
    if (stage >= 0) last_read_in[size_t(r)] = std::max(last_read_in[size_t(r)], stage + 1);
    (stage < 0 ? input_symbols : stage_symbols[size_t(stage)]).push_back(int32_t(i));
    has_capacity |= symbol.capacity >= 0;
  }
  // Row by row: after which stage it is known, and whether a capacity symbol is under it.
  std::vector<int32_t> known_after(program->exprs.size(), before);
  varying.assign(program->exprs.size(), false);
  for (size_t r = 0; r < program->exprs.size(); ++r) {
    const ExprRow& row = program->exprs[r];
    if (row.op == ExprOp::symbol) {
      const Symbol& symbol = program->symbols[size_t(row.i)];
      known_after[r] = defined_in[size_t(root[size_t(symbol.value)])];
      varying[r] = symbol.capacity >= 0;
      continue;
    }
    for (int k = 0; k < info_of(row.op).arity; ++k) {
      known_after[r] = std::max(known_after[r], known_after[size_t(row.args[k])]);
      varying[r] = varying[r] || varying[size_t(row.args[k])];
    }
  }
  place_outputs(known_after);
}

// An output is written directly when a stage makes it and its dims are known in time.
void Facts::place_outputs(const std::vector<int32_t>& known_after) {
  for (size_t j = 0; j < program->outputs.size(); ++j) {
    const ValueId v = program->outputs[j];
    const ValueId r = root[size_t(v)];
    const int32_t stage = defined_in[size_t(r)];
    bool direct = is_tensor(v) && stage != before && direct_output[size_t(r)] < 0;
    if (direct && segment(size_t(stage))) {
      for (ExprId dim : value(v).shape) direct &= known_after[size_t(dim)] < stage;
    } else {
      direct &= v == r;
    }
    if (direct) direct_output[size_t(r)] = int32_t(j);
    if (!direct) last_read_in[size_t(r)] = int32_t(program->stages.size());
    copied.push_back(!direct);
  }
}

bool Facts::depends_on_capacity(const Node& node) const {
  if (!has_capacity) return false;
  bool found = false;
  const auto look = [&](ExprId id) { found = found || (id >= 0 && varying[size_t(id)]); };
  for_each_dim(node.prim, look);
  for (const auto* list : {&node.inputs, &node.outputs})
    for (ValueId v : *list)
      if (v >= 0) std::ranges::for_each(value(v).shape, look);
  return found;
}

void Facts::mark_states() {
  for (size_t i = 0; i < program->states.size(); ++i) {
    const StatePair& pair = program->states[i];
    const ValueId in = program->inputs[size_t(pair.input)];
    const ValueId out = program->outputs[size_t(pair.output)];
    const std::string name = value(in).name;
    if (direct_output[size_t(out)] != pair.output || input_at[size_t(in)] != pair.input) {
      inconsistent("state " + name + " is not continued by a node's own output");
    }
    const ExprId grown = value(out).shape.at(size_t(pair.axis));
    if (!varying[size_t(grown)]) inconsistent("state " + name + " grows without a capacity");
    state_of[size_t(in)] = state_of[size_t(out)] = int32_t(i);
  }
  // Their rows lie apart: only nodes, which are told strides, may look at them.
  for (size_t v = 0; v < root.size(); ++v) {
    if (root[v] != ValueId(v) && state_of[size_t(root[v])] >= 0) {
      inconsistent("a state has an alias: " + value(ValueId(v)).name);
    }
  }
  for (size_t s = 0; s < program->stages.size(); ++s) {
    if (segment(s)) continue;
    for_each_read(program->stages[s], [&](ValueId v) {
      if (state_of[size_t(root[size_t(v)])] >= 0) inconsistent("a stage reads a state");
    });
  }
}

}  // namespace rlx
