// Numbers of a binding: symbols read from shapes and memory, dims of values.
#pragma once

#include <span>
#include <string>

#include "backend.h"
#include "core/expr.h"
#include "program/program.h"

namespace rlx {

// Element `index` of a tensor as the number of a symbol.
Number read_number(DType dtype, const void* data, int64_t index);

inline Number integer(int64_t i) { return {i, double(i), true}; }

// The expressions of a program where they are known, and where not, their bounds from above.
struct Numbers {
  std::span<const Number> exact, bounds;

  const Number& operator[](ExprId id) const {
    const Number& number = exact[size_t(id)];
    return number.known ? number : bounds[size_t(id)];
  }
};

// The dims of a value; throws Error when one is unknown, negative or absurdly large.
Dims dims_of(const Value& value, Numbers numbers);
Dims row_major(std::span<const int64_t> shape);

std::string text_of(std::span<const int64_t> shape);  // "[2, 3]"

// "batch=3, seq=4": the symbols under an expression, as far as they are known.
std::string symbols_under(const Program& program, ExprId id, std::span<const Number> symbols);

}  // namespace rlx
