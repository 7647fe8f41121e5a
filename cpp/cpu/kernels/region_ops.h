// A Region as a list of loops to run: casts made explicit, constants folded, duplicate and dead
// work removed. Knows nothing of shapes.
#pragma once

#include <span>
#include <vector>

#include "cpu/kernels/region_loops.h"
#include "core/expr.h"
#include "program/prims.h"

namespace rlx::cpu {

// One element of any type.
struct alignas(16) Cell {
  unsigned char bytes[16] = {};
};

struct Op {
  enum class Kind : uint8_t { source, index, constant, scalar, convert, quantise };
  explicit Op(Kind k) : kind(k) {}

  Kind kind;
  ScalarOp op{};                 // scalar
  DType type = DType::none;      // what its memory holds: a compute type or a storage type
  DType loop_type = DType::none; // scalar: the compute type of its arguments
  int args[3] = {-1, -1, -1};
  int count = 0;                 // of args
  int from = -1;                 // source: the input; index: the axis
  Loop loop = nullptr;           // convert
  Cell value;                    // constant
};

// The loop of a scalar, convert or quantise; bit k of `scalars` says that argument k is one
// element. Null if there is none for that mix.
Loop loop_of(const Op& op, unsigned scalars);

struct OpList {
  std::vector<Op> ops;           // arguments come before their users
  std::vector<int> results;      // one for each output, of the output's storage type
};

// inputs and outputs: storage types. Throws Error(unsupported) for a function that does not exist
// on its type.
OpList simplify(const Region& region, std::span<const Number> numbers,
                std::span<const DType> inputs, std::span<const DType> outputs);

}  // namespace rlx::cpu
