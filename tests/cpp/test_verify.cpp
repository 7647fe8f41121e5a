// verify accepts a Program with every kind of table and names what is broken in others.
#include <functional>
#include <string>

#include "core/error.h"
#include "program/program.h"
#include "tests/cpp/check.h"

namespace rlx::test {
namespace {

Value tensor(DType dtype, std::vector<ExprId> shape = {}) {
  Value value;
  value.dtype = dtype;
  value.shape = std::move(shape);
  return value;
}

Symbol dim_symbol(ValueId value, std::string name) {
  Symbol symbol;
  symbol.value = value;
  symbol.name = std::move(name);
  return symbol;
}

Symbol element_symbol(ValueId value, std::string name) {
  Symbol symbol = dim_symbol(value, std::move(name));
  symbol.kind = Symbol::Kind::element;
  return symbol;
}

// Rows of the base program: 0 is the symbol n of input 0, 1 the constant 4, 2 the runtime
// symbol m of value 3, 3 the constant 1, 4 is n + m.
Program base() {
  static const float data[4] = {};
  Program p;
  p.exprs = {{.op = ExprOp::symbol, .i = 0},
             {.op = ExprOp::const_int, .i = 4},
             {.op = ExprOp::symbol, .i = 1},
             {.op = ExprOp::const_int, .i = 1},
             {.op = ExprOp::add, .args = {0, 2}}};
  p.symbols = {dim_symbol(0, "n"), element_symbol(3, "m")};
  p.symbols[1].upper = 0;
  p.values = {
      tensor(DType::float32, {0}),   // 0: input
      tensor(DType::float32, {1}),   // 1: constant
      tensor(DType::int64, {3, 2}),  // 2: where it is not zero
      tensor(DType::int64, {3}),     // 3: how many
      tensor(DType::int64, {2}),     // 4: alias of 2
      tensor(DType::int64, {2}),     // 5: its running sum
  };
  p.values[1].constant = 0;
  p.values[4].alias_of = 2;
  p.constants.resize(1);
  p.constants[0].data = data, p.constants[0].bytes = sizeof(data);
  p.constants[0].source = "here";
  p.origins.resize(1);
  p.origins[0].name = "find", p.origins[0].op = "NonZero";
  Segment first, second;
  first.nodes.push_back({Sort{.kind = SortKind::nonzero, .k = 1}, {0}, {2, 3}, 0});
  second.nodes.push_back({Cumulate{}, {4}, {5}, -1});
  p.stages = {first, second};
  p.guards.resize(1);
  p.guards[0].condition = 4;
  p.inputs = {0};
  p.input_names = {"x"};
  p.outputs = {5, 1};
  p.output_names = {"y", "c"};
  return p;
}

Node& node(Program& p, size_t stage) { return std::get<Segment>(p.stages[stage]).nodes[0]; }

void broken(const std::string& message, const std::function<void(Program&)>& breakage) {
  Program p = base();
  breakage(p);
  try {
    verify(p);
  } catch (const Error& error) {
    check(error.kind == ErrorKind::internal);
    const std::string text = error.what();
    check(text.find(message) != std::string::npos, "expected '" + message + "' in: " + text);
    return;
  }
  fail("nothing was thrown for: " + message, Where::current());
}

const Test accepts{"verify: accepts a program and prints it", [] {
  const Program p = base();
  verify(p);
  const std::string text = dump(p);
  check(text.find("%2: int64[1, m], %3: int64[1] = Sort(%0)") != std::string::npos, text);
  check(text.find("alias %4: int64[m] = %2") != std::string::npos, text);
  verify(Program{});
}};

const Test tables{"verify: tables are consistent", [] {
  broken("precedes its argument", [](Program& p) { p.exprs[4].args[0] = 4; });
  broken("symbol 7 does not exist", [](Program& p) { p.exprs[0].i = 7; });
  broken("wrong kind of number", [](Program& p) { p.exprs[4].is_float = true; });
  broken("floordiv takes integers", [](Program& p) {
    p.exprs.push_back({.op = ExprOp::to_float, .is_float = true, .args = {0}});
    p.exprs.push_back({.op = ExprOp::floordiv, .args = {5, 1}});
  });
  broken("an axis that is not there", [](Program& p) { p.symbols[0].index = 1; });
  broken("wrong type", [](Program& p) { p.values[3].dtype = DType::float32; });
  broken("expression 99 does not exist", [](Program& p) { p.values[0].shape[0] = 99; });
  broken("negative dim", [](Program& p) { p.exprs[1].i = -4; });
  broken("another size", [](Program& p) { p.exprs[1].i = 5; });
  broken("without identity", [](Program& p) { p.constants[0].source.clear(); });
  broken("symbolic dim", [](Program& p) { p.values[1].shape[0] = 0; });
  broken("string 5 does not exist", [](Program& p) {
    static const int64_t ids[4] = {0, 5, 0, 0};
    p.strings = {"only"};
    p.values[1].dtype = DType::string;
    p.constants[0].data = ids, p.constants[0].bytes = sizeof(ids);
  });
}};

const Test order{"verify: values are defined once and before use", [] {
  broken("%4 'flat' is read before", [](Program& p) {
    p.values[4].name = "flat";
    std::swap(p.stages[0], p.stages[1]);
  });
  broken("%5 is read before it is defined", [](Program& p) { node(p, 0).inputs[0] = 5; });
  broken("%5 is defined twice", [](Program& p) {
    std::get<Segment>(p.stages[1]).nodes.push_back(node(p, 1));
  });
  broken("is an alias and computed", [](Program& p) { node(p, 1).outputs[0] = 4; });
  broken("alias of itself", [](Program& p) {
    p.values[2].alias_of = 4;
  });
  broken("another element type", [](Program& p) { p.values[4].dtype = DType::int32; });
  broken("an input and something else", [](Program& p) { p.inputs[0] = 1; });
  broken("names differ in number", [](Program& p) { p.output_names.pop_back(); });
}};

const Test numbers{"verify: numbers are known before they are needed", [] {
  broken("needed before it is computed", [](Program& p) {
    auto& nodes = std::get<Segment>(p.stages[0]).nodes;
    nodes.push_back(node(p, 1));
    p.stages.pop_back();
  });
  broken("no upper bound", [](Program& p) { p.symbols[1].upper = -1; });
  broken("not known in time", [](Program& p) { p.symbols[1].upper = 2; });
  broken("a guard is never decided", [](Program& p) {
    p.values.push_back(tensor(DType::int64, {3}));
    p.symbols.push_back(element_symbol(6, "lost"));
    p.exprs.push_back({.op = ExprOp::symbol, .i = 2});
    p.guards[0].condition = 5;
  });
}};

const Test prims{"verify: primitives fit their operands", [] {
  broken("expected 1 inputs, got 2", [](Program& p) { node(p, 1).inputs.push_back(0); });
  broken("input 0 is absent", [](Program& p) { node(p, 1).inputs[0] = -1; });
  broken("axis 3 is not in a rank of 1", [](Program& p) { node(p, 1).prim = Cumulate{.axis = 3}; });
  broken("expression -1 does not exist", [](Program& p) { node(p, 0).prim = Sort{}; });
  broken("no accumulation type", [](Program& p) {
    p.values[5].shape = {3, 2};
    MatMul product;
    product.accumulate = DType::none;
    node(p, 1) = {product, {2, 2, -1, -1, -1, -1}, {5}, -1};
  });
  broken("takes ranks of at least 2", [](Program& p) {
    node(p, 1) = {MatMul{}, {4, 4, -1, -1, -1, -1}, {5}, -1};
  });
  broken("no permutation", [](Program& p) {
    MovePart part;
    part.perm = {1};
    part.starts = part.steps = part.extents = part.offsets = {1};
    Move move;
    move.parts = {part};
    node(p, 1).prim = move;
  });
}};

const Test regions{"verify: regions are in SSA order and read what is there", [] {
  const auto with = [](const std::function<void(Region&)>& breakage) {
    return [breakage](Program& p) {
      Region r;
      r.shape = {2};
      r.accesses = {{{.axis = 0, .div = 3, .mod = 1}}};
      r.ops = {{.kind = RegionOp::Kind::load, .dtype = DType::int64, .args = {0, -1, -1, -1}}};
      r.results = {0};
      breakage(r);
      node(p, 1).prim = r;
    };
  };
  Program p = base();
  with([](Region&) {})(p);
  verify(p);
  broken("loads another element type", with([](Region& r) { r.ops[0].dtype = DType::int8; }));
  broken("loads nothing", with([](Region& r) { r.ops[0].args[0] = 1; }));
  broken("an axis that is not there", with([](Region& r) { r.accesses[0][0].axis = 1; }));
  broken("another rank than its value", with([](Region& r) { r.accesses[0].clear(); }));
  broken("result does not exist", with([](Region& r) { r.results[0] = 1; }));
  broken("precedes its argument", with([](Region& r) {
    r.ops[0] = {.kind = RegionOp::Kind::scalar, .dtype = DType::int64, .args = {0, -1, -1, -1}};
  }));
}};

// A branch that gives back what it captures.
ProgramPtr branch(DType dtype) {
  auto p = std::make_shared<Program>();
  p->exprs = {{.op = ExprOp::symbol, .i = 0}};
  p->symbols.push_back(dim_symbol(0, "inner"));
  p->values.push_back(tensor(dtype, {0}));
  p->inputs = p->outputs = {0};
  p->input_names = p->output_names = {"v"};
  return p;
}

const Test stages{"verify: child programs take and give what their stage passes", [] {
  const auto with_if = [](DType inside, const std::function<void(If&)>& breakage) {
    return [=](Program& p) {
      p.values.push_back(tensor(DType::boolean));
      p.inputs.push_back(6);
      p.input_names.push_back("c");
      If stage{.condition = 6, .then_program = branch(DType::int64),
               .else_program = branch(inside), .captures = {4}, .outputs = {5}};
      breakage(stage);
      p.stages[1] = stage;
    };
  };
  Program p = base();
  with_if(DType::int64, [](If&) {})(p);
  verify(p);
  check(dump(p).find("%5: int64[m] = If %6(%4)") != std::string::npos, dump(p));
  broken("another type inside", with_if(DType::int32, [](If&) {}));
  broken("inputs of a branch", with_if(DType::int64, [](If& s) { s.captures.clear(); }));
  broken("child program is missing",
         with_if(DType::int64, [](If& s) { s.else_program = nullptr; }));
  broken("without a condition", with_if(DType::int64, [](If& s) { s.condition = -1; }));
  broken("inputs of a Loop body", [](Program& p) {
    Loop loop;
    loop.body = branch(DType::int64);
    loop.carried = {4}, loop.outputs = {5};
    p.stages[1] = loop;
  });
  broken("wrong number of inputs", [](Program& p) {
    p.stages[1] = SequenceOp{.kind = SequenceKind::at, .inputs = {4}, .outputs = {5}};
  });
  broken("the host function 'f' is missing", [](Program& p) {
    Host host;
    host.function = "f", host.inputs = {4}, host.outputs = {5};
    p.stages[1] = host;
  });
}};

}  // namespace
}  // namespace rlx::test
