// Evaluates the expression table with the semantics of the evaluators in python/rlx/ir/expr.py.
#include "core/expr.h"

#include <array>
#include <cmath>
#include <limits>

namespace rlx {
namespace {

using Limits = std::numeric_limits<int64_t>;

constexpr std::array<ExprOpInfo, expr_op_count> infos = {{
    {"const_int", 0},   {"const_float", 0}, {"symbol", 0},   {"add", 2},      {"sub", 2},
    {"mul", 2},         {"min", 2},         {"max", 2},      {"eq", 2},       {"ne", 2},
    {"lt", 2},          {"le", 2},          {"and", 2},      {"or", 2},       {"not", 1},
    {"select", 3},      {"truncdiv", 2},    {"floordiv", 2}, {"mod", 2},      {"div", 2},
    {"floor", 1},       {"ceil", 1},        {"round", 1},    {"sqrt", 1},     {"to_int", 1},
    {"to_float", 1},    {"to_f32", 1},      {"bcast", 2},
}};
static_assert(infos[size_t(ExprOp::lnot)].name == "not");
static_assert(infos[size_t(ExprOp::bcast)].name == "bcast");

// int64 tensors wrap around in ONNX, and signed overflow is undefined in C++.
int64_t wrap_add(int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); }
int64_t wrap_sub(int64_t a, int64_t b) { return int64_t(uint64_t(a) - uint64_t(b)); }
int64_t wrap_mul(int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); }

int64_t trunc_div(int64_t a, int64_t b) {
  if (b == 0) return 0;
  return b == -1 ? wrap_sub(0, a) : a / b;
}

int64_t floor_mod(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0) return 0;
  const bool inexact = b != -1 && a % b != 0;
  return trunc_div(a, b) - (inexact && (a < 0) != (b < 0));
}

// A zero divisor has no sign here, and 0 / 0 is NaN.
double true_div(double a, double b) {
  if (b != 0.0 || std::isnan(b)) return a / b;
  if (a == 0.0) return std::nan("");
  return std::copysign(std::numeric_limits<double>::infinity(), a);
}

int64_t to_int(double a) {
  if (!std::isfinite(a)) return 0;
  if (a >= 0x1p63) return Limits::max();
  if (a < -0x1p63) return Limits::min();
  return int64_t(a);
}

// The second argument gives way when neither is smaller, as in Python: it decides about NaN.
template <class T>
T min_of(T a, T b) { return b < a ? b : a; }
template <class T>
T max_of(T a, T b) { return b > a ? b : a; }

class Evaluator {
 public:
  Evaluator(std::span<const ExprRow> rows, std::span<const Number> symbols, std::span<Number> out)
      : rows_(rows), symbols_(symbols), out_(out) {}

  void run() {
    for (size_t r = 0; r < rows_.size(); ++r)
      if (!out_[r].known && arguments_known(rows_[r])) out_[r] = value_of(rows_[r]);
  }

 private:
  const Number& arg(const ExprRow& row, int k) const { return out_[size_t(row.args[k])]; }
  bool float_arg(const ExprRow& row, int k) const { return rows_[size_t(row.args[k])].is_float; }

  bool arguments_known(const ExprRow& row) const {
    if (row.op == ExprOp::symbol) return symbols_[size_t(row.i)].known;
    for (int k = 0; k < info_of(row.op).arity; ++k)
      if (!arg(row, k).known) return false;
    return true;
  }

  // Both members are filled, so that a reader of `f` need not care about the kind of the row.
  static Number integer(int64_t i) { return {i, double(i), true}; }
  static Number real(double f) { return {to_int(f), f, true}; }
  static bool truth(const Number& x) { return x.i != 0 || x.f != 0.0; }

  Number value_of(const ExprRow& row) const {
    switch (row.op) {
      case ExprOp::const_int: return integer(row.i);
      case ExprOp::const_float: return real(row.f);
      case ExprOp::symbol: {
        const Number& given = symbols_[size_t(row.i)];
        return row.is_float ? real(given.f) : integer(given.i);
      }
      case ExprOp::land: return integer(truth(arg(row, 0)) && truth(arg(row, 1)));
      case ExprOp::lor: return integer(truth(arg(row, 0)) || truth(arg(row, 1)));
      case ExprOp::lnot: return integer(!truth(arg(row, 0)));
      case ExprOp::select: {
        const Number& taken = arg(row, truth(arg(row, 0)) ? 1 : 2);
        return row.is_float ? real(taken.f) : integer(taken.i);
      }
      default: break;
    }
    return info_of(row.op).arity == 1 ? unary(row) : binary(row);
  }

  // Adding zero turns -0.0 into 0.0: Python rounds through its integers.
  Number unary(const ExprRow& row) const {
    const Number& a = arg(row, 0);
    switch (row.op) {
      case ExprOp::floor: return real(std::floor(a.f) + 0.0);
      case ExprOp::ceil: return real(std::ceil(a.f) + 0.0);
      case ExprOp::round: return real(std::nearbyint(a.f) + 0.0);
      case ExprOp::sqrt: return real(a.f >= 0.0 ? std::sqrt(a.f) : std::nan(""));
      case ExprOp::to_int: return float_arg(row, 0) ? integer(to_int(a.f)) : a;
      case ExprOp::to_f32: return real(double(float(a.f)));
      default: return real(a.f);  // to_float
    }
  }

  Number binary(const ExprRow& row) const {
    const Number &a = arg(row, 0), &b = arg(row, 1);
    switch (row.op) {
      case ExprOp::truncdiv: return integer(trunc_div(a.i, b.i));
      case ExprOp::floordiv: return integer(floor_div(a.i, b.i));
      case ExprOp::mod: return integer(floor_mod(a.i, b.i));
      case ExprOp::div: return real(true_div(a.f, b.f));
      case ExprOp::bcast: return integer(a.i == 1 ? b.i : a.i);
      default: break;
    }
    return float_arg(row, 0) || float_arg(row, 1) ? of_reals(row.op, a.f, b.f)
                                                  : of_integers(row.op, a.i, b.i);
  }

  static Number of_integers(ExprOp op, int64_t a, int64_t b) {
    switch (op) {
      case ExprOp::add: return integer(wrap_add(a, b));
      case ExprOp::sub: return integer(wrap_sub(a, b));
      case ExprOp::mul: return integer(wrap_mul(a, b));
      case ExprOp::min: return integer(min_of(a, b));
      case ExprOp::max: return integer(max_of(a, b));
      default: return compare(op, a, b);
    }
  }

  static Number of_reals(ExprOp op, double a, double b) {
    switch (op) {
      case ExprOp::add: return real(a + b);
      case ExprOp::sub: return real(a - b);
      case ExprOp::mul: return real(a * b);
      case ExprOp::min: return real(min_of(a, b));
      case ExprOp::max: return real(max_of(a, b));
      default: return compare(op, a, b);
    }
  }

  template <class T>
  static Number compare(ExprOp op, T a, T b) {
    switch (op) {
      case ExprOp::eq: return integer(a == b);
      case ExprOp::ne: return integer(a != b);
      case ExprOp::lt: return integer(a < b);
      default: return integer(a <= b);  // le
    }
  }

  std::span<const ExprRow> rows_;
  std::span<const Number> symbols_;
  std::span<Number> out_;
};

}  // namespace

const ExprOpInfo& info_of(ExprOp op) { return infos[size_t(op)]; }

std::optional<ExprOp> expr_op(std::string_view python_name) {
  for (size_t k = 0; k < infos.size(); ++k)
    if (infos[k].name == python_name) return ExprOp(k);
  return std::nullopt;
}

void evaluate(std::span<const ExprRow> rows, std::span<const Number> symbols,
              std::span<Number> out) {
  Evaluator(rows, symbols, out).run();
}

}  // namespace rlx
