// Symbolic scalars: a table of rows in SSA order, evaluated when a program is bound.
// Twin of python/rlx/ir/expr.py: the same operations by the same names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace rlx {

using ExprId = int32_t;  // index into ExprTable; what a Dim is in C++

enum class ExprOp : uint8_t {
  const_int, const_float, symbol,
  add, sub, mul, min, max, eq, ne, lt, le, land, lor, lnot, select,
  truncdiv, floordiv, mod, div, floor, ceil, round, sqrt, to_int, to_float, to_f32, bcast,
};

constexpr size_t expr_op_count = size_t(ExprOp::bcast) + 1;

struct ExprOpInfo {
  std::string_view name;  // as in Python's OPS
  int arity;              // arguments that are rows
};

const ExprOpInfo& info_of(ExprOp op);
std::optional<ExprOp> expr_op(std::string_view python_name);

struct ExprRow {
  ExprOp op;
  bool is_float = false;
  ExprId args[3] = {-1, -1, -1};
  int64_t i = 0;   // const_int; symbol: its index
  double f = 0.0;  // const_float
};

// The value of a row: `i` and `f` both hold it, exact in the declared kind of the row. Unknown
// until the symbols under it are known. Of a symbol's number only the declared kind is read.
struct Number {
  int64_t i = 0;
  double f = 0.0;
  bool known = false;
};

// Evaluates every row whose arguments are known; rows already known are kept.
void evaluate(std::span<const ExprRow> rows, std::span<const Number> symbols,
              std::span<Number> out);

}  // namespace rlx
