// Checks a whole Program: tables, order of definition, when numbers become known, stages.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <set>

#include "core/error.h"
#include "program/fields.h"
#include "program/names.h"
#include "program/verify_node.h"

namespace rlx {
namespace {

constexpr int undefined = std::numeric_limits<int>::max();
constexpr int before_all = -1;  // the level of inputs and constants: known before stage 0

class Verifier {
 public:
  explicit Verifier(const Program& program) : p_(program) {}

  void run() {
    check_exprs();
    check_symbols();
    check_values();
    check_interface();
    level_.assign(p_.values.size(), undefined);
    for (size_t v = 0; v < p_.values.size(); ++v)
      if (p_.values[v].constant >= 0) level_[v] = before_all;
    for (ValueId v : p_.inputs) define(v, before_all);
    for (size_t s = 0; s < p_.stages.size(); ++s) walk(int(s));
    for (ValueId v : p_.outputs) use(v, int(p_.stages.size()));
    level_rows();
    for (size_t s = 0; s < p_.stages.size(); ++s) check_known(int(s));
    check_guards_and_states();
  }

 private:
  // -- tables --------------------------------------------------------------------------------

  template <class T>
  void require_index(int64_t index, const std::vector<T>& table, const char* what) const {
    require(index >= 0 && size_t(index) < table.size(),
            std::string(what) + " " + std::to_string(index) + " does not exist");
  }
  void require_expr(ExprId id) const { require_index(id, p_.exprs, "expression"); }
  void require_value(ValueId id) const { require_index(id, p_.values, "value"); }

  void check_exprs() const {
    for (size_t r = 0; r < p_.exprs.size(); ++r) {
      const ExprRow& row = p_.exprs[r];
      const std::string where = "expression " + std::to_string(r);
      require(size_t(row.op) < expr_op_count, where + " has no operation");
      for (int k = 0; k < info_of(row.op).arity; ++k)
        require(row.args[k] >= 0 && size_t(row.args[k]) < r, where + " precedes its argument");
      if (row.op == ExprOp::symbol) require_index(row.i, p_.symbols, "symbol");
      require(row.is_float == expected_float(row), where + " has the wrong kind of number");
    }
  }

  bool float_arg(const ExprRow& row, int k) const { return p_.exprs[size_t(row.args[k])].is_float; }

  bool expected_float(const ExprRow& row) const {
    switch (row.op) {
      case ExprOp::symbol: return p_.symbols[size_t(row.i)].is_float;
      case ExprOp::add: case ExprOp::sub: case ExprOp::mul: case ExprOp::min: case ExprOp::max:
        return float_arg(row, 0) || float_arg(row, 1);
      case ExprOp::select: return float_arg(row, 1) || float_arg(row, 2);
      case ExprOp::truncdiv: case ExprOp::floordiv: case ExprOp::mod: case ExprOp::bcast:
        require(!float_arg(row, 0) && !float_arg(row, 1),
                std::string(info_of(row.op).name) + " takes integers");
        return false;
      case ExprOp::const_float: case ExprOp::div: case ExprOp::floor: case ExprOp::ceil:
      case ExprOp::round: case ExprOp::sqrt: case ExprOp::to_float: case ExprOp::to_f32:
        return true;
      default: return false;
    }
  }

  void check_symbols() const {
    for (const Symbol& s : p_.symbols) {
      const std::string where = "symbol '" + s.name + "'";
      require_value(s.value);
      const Value& value = p_.values[size_t(s.value)];
      require(value.kind == ValueKind::tensor && s.index >= 0, where + " is of no tensor");
      if (s.kind == Symbol::Kind::dim) {
        require(size_t(s.index) < value.shape.size(), where + " is of an axis that is not there");
        require(!s.is_float, where + " is a dim and no integer");
      } else {
        const bool number = is_integer(value.dtype) || is_float(value.dtype) ||
                            value.dtype == DType::boolean;
        require(number && s.is_float == is_float(value.dtype), where + " has the wrong type");
      }
      if (s.upper >= 0) require_expr(s.upper);
      if (s.capacity >= 0) require_expr(s.capacity);
    }
  }

  void check_values() const {
    std::vector<Number> unknown(p_.symbols.size()), numbers(p_.exprs.size());
    evaluate(p_.exprs, unknown, numbers);
    for (size_t v = 0; v < p_.values.size(); ++v) {
      const Value& value = p_.values[v];
      const std::string where = value_text(p_, ValueId(v));
      require(size_t(value.dtype) < dtype_count, where + " has no element type");
      require(value.kind != ValueKind::tensor || value.dtype != DType::none,
              where + " is a tensor without element type");
      for (ExprId dim : value.shape) {
        require_expr(dim);
        require(!p_.exprs[size_t(dim)].is_float, where + " has a dim that is no integer");
        const Number& n = numbers[size_t(dim)];
        require(!n.known || n.i >= 0, where + " has a negative dim");
      }
      if (value.alias_of >= 0) check_alias(ValueId(v));
      if (value.constant >= 0) check_constant(value, where, numbers);
    }
  }

  void check_alias(ValueId v) const {
    const Value& value = p_.values[size_t(v)];
    const std::string where = value_text(p_, v);
    require_value(value.alias_of);
    const Value& source = p_.values[size_t(value.alias_of)];
    require(value.kind == ValueKind::tensor && source.kind == ValueKind::tensor,
            where + " is an alias of or as something else than a tensor");
    require(value.dtype == source.dtype, where + " is an alias of another element type");
    require(value.constant < 0, where + " is an alias and a constant");
    ValueId at = v;
    for (size_t steps = 0; p_.values[size_t(at)].alias_of >= 0; ++steps) {
      require(steps < p_.values.size(), where + " is an alias of itself");
      at = p_.values[size_t(at)].alias_of;
      require_value(at);
    }
  }

  void check_constant(const Value& value, const std::string& where,
                      const std::vector<Number>& numbers) const {
    require_index(value.constant, p_.constants, "constant");
    require(value.kind == ValueKind::tensor, where + " is a constant but no tensor");
    const Constant& constant = p_.constants[size_t(value.constant)];
    size_t bytes = size_of(value.dtype);
    for (ExprId dim : value.shape) {
      require(numbers[size_t(dim)].known, where + " is a constant with a symbolic dim");
      bytes *= size_t(numbers[size_t(dim)].i);
    }
    require(constant.bytes == bytes, where + " is a constant of another size");
    require(bytes == 0 || constant.data != nullptr, where + " is a constant without data");
    require(!constant.source.empty(), where + " is a constant without identity");
    if (value.dtype != DType::string) return;
    for (size_t at = 0; at < bytes; at += sizeof(int64_t)) {
      int64_t id = 0;
      std::memcpy(&id, static_cast<const char*>(constant.data) + at, sizeof(id));
      require_index(id, p_.strings, "string");
    }
  }

  void check_interface() const {
    require(p_.inputs.size() == p_.input_names.size(), "inputs and their names differ in number");
    require(p_.outputs.size() == p_.output_names.size(),
            "outputs and their names differ in number");
    for (ValueId v : p_.inputs) {
      require_value(v);
      const Value& value = p_.values[size_t(v)];
      require(value.constant < 0 && value.alias_of < 0,
              value_text(p_, v) + " is an input and something else");
    }
    for (ValueId v : p_.outputs) require_value(v);
  }

  // -- order of definition -------------------------------------------------------------------

  ValueId root(ValueId v) const {
    while (p_.values[size_t(v)].alias_of >= 0) v = p_.values[size_t(v)].alias_of;
    return v;
  }
  int level_of(ValueId v) const { return level_[size_t(root(v))]; }

  void define(ValueId v, int level) {
    require_value(v);
    require(p_.values[size_t(v)].alias_of < 0, value_text(p_, v) + " is an alias and computed");
    require(level_[size_t(v)] == undefined, value_text(p_, v) + " is defined twice");
    level_[size_t(v)] = level;
  }

  void use(ValueId v, int stage) const {
    require_value(v);
    require(level_of(v) <= stage, value_text(p_, v) + " is read before it is defined");
  }

  void walk(int s) {
    std::visit([&](const auto& stage) { walk(stage, s); }, p_.stages[size_t(s)]);
  }

  void walk(const Segment& segment, int s) {
    for (const Node& node : segment.nodes) {
      in_node(p_, node.origin, name_of(node.prim), [&] {
        for (ValueId v : node.inputs)
          if (v >= 0) use(v, s);
        for (ValueId v : node.outputs)
          if (v >= 0) define(v, s);
        for_each_dim(node.prim, [&](ExprId dim) { require_expr(dim); });
        verify_node(p_, node);
      });
    }
  }

  template <class S>
  void walk(const S& stage, int s) {
    in_node(p_, stage.origin, "stage", [&] {
      for (ValueId v : stage_inputs(stage))
        if (v >= 0) use(v, s);
      for (ValueId v : stage.outputs)
        if (v >= 0) define(v, s);
      verify_stage(p_, stage);
    });
  }

  // -- when numbers become known ---------------------------------------------------------------

  void level_rows() {
    row_level_.assign(p_.exprs.size(), before_all);
    for (size_t r = 0; r < p_.exprs.size(); ++r) {
      const ExprRow& row = p_.exprs[r];
      if (row.op == ExprOp::symbol)
        row_level_[r] = level_of(p_.symbols[size_t(row.i)].value);
      for (int k = 0; k < info_of(row.op).arity; ++k)
        row_level_[r] = std::max(row_level_[r], row_level_[size_t(row.args[k])]);
    }
  }

  // Everything that binding a segment reads must be known when the stage before it has run.
  void check_known(int s) const {
    const auto* segment = std::get_if<Segment>(&p_.stages[size_t(s)]);
    if (segment == nullptr) return;
    for (const Node& node : segment->nodes) {
      in_node(p_, node.origin, name_of(node.prim), [&] {
        const auto known = [&](ExprId dim) {
          require(row_level_[size_t(dim)] < s, "a number is needed before it is computed");
        };
        for_each_dim(node.prim, known);
        for (ValueId v : node.inputs)
          if (v >= 0) std::ranges::for_each(p_.values[size_t(v)].shape, known);
        for (ValueId v : node.outputs)
          if (v >= 0)
            for (ExprId dim : p_.values[size_t(v)].shape) check_output_dim(node, dim, s);
      });
    }
  }

  // A dim that the node itself computes must have a bound that is known.
  void check_output_dim(const Node& node, ExprId dim, int s) const {
    const ExprRow& row = p_.exprs[size_t(dim)];
    if (row.op == ExprOp::symbol) {
      const Symbol& symbol = p_.symbols[size_t(row.i)];
      if (std::ranges::find(node.outputs, symbol.value) != node.outputs.end()) {
        require(symbol.upper >= 0, "a dim that the node computes has no upper bound");
        require(row_level_[size_t(symbol.upper)] < s, "an upper bound is not known in time");
        return;
      }
    }
    require(row_level_[size_t(dim)] < s, "a dim of an output is needed before it is computed");
  }

  void check_guards_and_states() const {
    for (const Guard& guard : p_.guards) {
      require_expr(guard.condition);
      require(row_level_[size_t(guard.condition)] != undefined, "a guard is never decided");
      require(guard.origin < int(p_.origins.size()), "a guard has no such origin");
    }
    for (const StatePair& state : p_.states) {
      require_index(state.input, p_.inputs, "input");
      require_index(state.output, p_.outputs, "output");
      const Value& in = p_.values[size_t(p_.inputs[size_t(state.input)])];
      const Value& out = p_.values[size_t(p_.outputs[size_t(state.output)])];
      require(in.dtype == out.dtype && in.shape.size() == out.shape.size() && state.axis >= 0 &&
                  size_t(state.axis) < in.shape.size(),
              "a state pair does not fit together");
    }
  }

  const Program& p_;
  std::vector<int> level_;      // of each value: the stage that makes it
  std::vector<int> row_level_;  // of each expression: the last stage it depends on
};

}  // namespace

void verify(const Program& program) { Verifier(program).run(); }

}  // namespace rlx
