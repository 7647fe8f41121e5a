// The scalar functions of Regions: one row each; twin of python/rlx/ir/scalars.py.
// A function exists for the types that its definition's concept allows.
#pragma once

#include "kernels/include/scalar_integer.h"
#include "kernels/include/scalar_real.h"

// X(identifier, name, arity): scalar::identifier is the function, name the one used in the IR.
#define RLX_SCALAR_OPS(X)                                                                      \
  X(abs, "abs", 1) X(neg, "neg", 1) X(sign, "sign", 1) X(ceil, "ceil", 1)                      \
  X(floor, "floor", 1) X(round, "round", 1) X(sqrt, "sqrt", 1) X(rsqrt, "rsqrt", 1)            \
  X(exp, "exp", 1) X(log, "log", 1) X(sin, "sin", 1) X(cos, "cos", 1) X(tan, "tan", 1)         \
  X(asin, "asin", 1) X(acos, "acos", 1) X(atan, "atan", 1) X(sinh, "sinh", 1)                  \
  X(cosh, "cosh", 1) X(tanh, "tanh", 1) X(asinh, "asinh", 1) X(acosh, "acosh", 1)              \
  X(atanh, "atanh", 1) X(erf, "erf", 1) X(sigmoid, "sigmoid", 1) X(softplus, "softplus", 1)    \
  X(reciprocal, "reciprocal", 1) X(gelu, "gelu", 1) X(gelu_tanh, "gelu_tanh", 1)               \
  X(silu, "silu", 1) X(is_nan, "is_nan", 1) X(is_pos_inf, "is_pos_inf", 1)                     \
  X(is_neg_inf, "is_neg_inf", 1) X(lnot, "not", 1) X(bitwise_not, "bitwise_not", 1)            \
  X(add, "add", 2) X(sub, "sub", 2) X(mul, "mul", 2) X(div, "div", 2) X(pow, "pow", 2)         \
  X(min, "min", 2) X(max, "max", 2) X(mod, "mod", 2) X(fmod, "fmod", 2)                        \
  X(bitwise_and, "bitwise_and", 2) X(bitwise_or, "bitwise_or", 2)                              \
  X(bitwise_xor, "bitwise_xor", 2) X(shift_left, "shift_left", 2)                              \
  X(shift_right, "shift_right", 2) X(eq, "eq", 2) X(ne, "ne", 2) X(lt, "lt", 2) X(le, "le", 2) \
  X(gt, "gt", 2) X(ge, "ge", 2) X(land, "and", 2) X(lor, "or", 2) X(lxor, "xor", 2)            \
  X(select, "select", 3)

namespace rlx::scalar {

template <Ordered T> RLX_FN bool eq(T a, T b) { return a == b; }
template <Ordered T> RLX_FN bool ne(T a, T b) { return a != b; }
template <Ordered T> RLX_FN bool lt(T a, T b) { return a < b; }
template <Ordered T> RLX_FN bool le(T a, T b) { return a <= b; }
template <Ordered T> RLX_FN bool gt(T a, T b) { return a > b; }
template <Ordered T> RLX_FN bool ge(T a, T b) { return a >= b; }
template <class T> RLX_FN T select(bool condition, T a, T b) { return condition ? a : b; }

}  // namespace rlx::scalar
