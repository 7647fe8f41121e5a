// Expressions evaluate as in Python, with int64 wraparound; hand-computed values.
#include "core/expr.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/cpp/check.h"

namespace rlx::test {
namespace {

using I = std::numeric_limits<int64_t>;

ExprRow integer(int64_t i) { return {.op = ExprOp::const_int, .i = i}; }
ExprRow real(double f) { return {.op = ExprOp::const_float, .is_float = true, .f = f}; }

Number value_of(ExprOp op, std::vector<ExprRow> args, bool is_float) {
  ExprRow row{.op = op, .is_float = is_float};
  for (size_t k = 0; k < args.size(); ++k) row.args[k] = ExprId(k);
  args.push_back(row);
  std::vector<Number> out(args.size());
  evaluate(args, {}, out);
  check(out.back().known);
  return out.back();
}

int64_t ints(ExprOp op, int64_t a, int64_t b) {
  return value_of(op, {integer(a), integer(b)}, false).i;
}

const Test names{"expr: every operation is found by its Python name", [] {
  check(expr_op("and") == ExprOp::land);
  check(expr_op("or") == ExprOp::lor);
  check(expr_op("not") == ExprOp::lnot);
  check(!expr_op("land").has_value());
  for (size_t k = 0; k < expr_op_count; ++k)
    check(expr_op(info_of(ExprOp(k)).name) == ExprOp(k));
}};

const Test division{"expr: integer division truncates or floors, and survives zero and -1", [] {
  check_equal(ints(ExprOp::truncdiv, -7, 2), -3);
  check_equal(ints(ExprOp::floordiv, -7, 2), -4);
  check_equal(ints(ExprOp::mod, -7, 2), 1);
  check_equal(ints(ExprOp::mod, 7, -2), -1);
  for (ExprOp op : {ExprOp::truncdiv, ExprOp::floordiv, ExprOp::mod})
    check_equal(ints(op, 5, 0), 0);
  check_equal(ints(ExprOp::truncdiv, I::min(), -1), I::min());
  check_equal(ints(ExprOp::floordiv, I::min(), -1), I::min());
  check_equal(ints(ExprOp::mod, I::min(), -1), 0);
}};

const Test wraps{"expr: integer arithmetic wraps around", [] {
  check_equal(ints(ExprOp::add, I::max(), 1), I::min());
  check_equal(ints(ExprOp::sub, I::min(), 1), I::max());
  check_equal(ints(ExprOp::mul, I::max(), 2), -2);
}};

const Test to_int{"expr: to_int truncates, saturates and takes NaN as 0", [] {
  const auto convert = [](double f) { return value_of(ExprOp::to_int, {real(f)}, false).i; };
  check_equal(convert(-2.9), -2);
  check_equal(convert(1e300), I::max());
  check_equal(convert(0x1p63), I::max());
  check_equal(convert(-0x1p63), I::min());
  check_equal(convert(-1e300), I::min());
  check_equal(convert(std::nan("")), 0);
  check_equal(convert(std::numeric_limits<double>::infinity()), 0);
}};

const Test reals{"expr: division, rounding and mixed kinds", [] {
  const double inf = std::numeric_limits<double>::infinity();
  check_equal(value_of(ExprOp::div, {integer(7), integer(2)}, true).f, 3.5);
  check_equal(value_of(ExprOp::div, {integer(-7), real(-0.0)}, true).f, -inf);
  check(std::isnan(value_of(ExprOp::div, {integer(0), integer(0)}, true).f));
  check_equal(value_of(ExprOp::round, {real(2.5)}, true).f, 2.0);
  check(!std::signbit(value_of(ExprOp::ceil, {real(-0.5)}, true).f));
  check(std::isnan(value_of(ExprOp::sqrt, {real(-1.0)}, true).f));
  check_equal(value_of(ExprOp::add, {integer(1), real(0.5)}, true).f, 1.5);
  check_equal(value_of(ExprOp::to_f32, {real(0.1)}, true).f, double(0.1f));
  check_equal(value_of(ExprOp::lt, {integer(1), real(1.5)}, false).i, 1);
}};

const Test bcast{"expr: broadcasting gives way for 1 only", [] {
  check_equal(ints(ExprOp::bcast, 1, 0), 0);
  check_equal(ints(ExprOp::bcast, 5, 1), 5);
  check_equal(ints(ExprOp::bcast, 0, 1), 0);
}};

const Test stepwise{"expr: rows become known with their symbols and then stay", [] {
  const ExprRow rows[] = {{.op = ExprOp::symbol, .i = 0},
                          {.op = ExprOp::symbol, .i = 1},
                          {.op = ExprOp::add, .args = {0, 1}},
                          {.op = ExprOp::select, .args = {0, 1, 2}}};
  Number symbols[2] = {{.i = 4, .known = true}, {}};
  Number out[4];
  evaluate(rows, symbols, out);
  check(out[0].known && !out[1].known && !out[2].known && !out[3].known);
  symbols[0].i = 5;
  symbols[1] = {.i = 3, .known = true};
  evaluate(rows, symbols, out);
  check_equal(out[2].i, 7);
  check_equal(out[3].i, 3);
}};

}  // namespace
}  // namespace rlx::test
