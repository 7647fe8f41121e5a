// The scalar functions of Regions as an enum, generated from kernels/include/scalar_ops.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "kernels/include/scalar_ops.h"
#include "program/prims.h"

namespace rlx {

enum class ScalarOp : uint16_t {
#define RLX_ENUMERATOR(identifier, name, arity) identifier,
  RLX_SCALAR_OPS(RLX_ENUMERATOR)
#undef RLX_ENUMERATOR
};

#define RLX_ONE(identifier, name, arity) +1
constexpr size_t scalar_op_count = RLX_SCALAR_OPS(RLX_ONE);
#undef RLX_ONE

struct ScalarOpInfo {
  std::string_view name;
  int arity;
};

const ScalarOpInfo& info_of(ScalarOp op);
std::optional<ScalarOp> scalar_op(std::string_view name);

}  // namespace rlx
