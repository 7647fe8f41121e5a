// Names of primitives and scalar functions, and the expressions that a primitive reads.
#include "program/prims.h"

#include <array>

#include "program/fields.h"
#include "program/scalar_op.h"

namespace rlx {
namespace {

constexpr std::array<ScalarOpInfo, scalar_op_count> scalar_ops = {{
#define RLX_ROW(identifier, name, arity) {name, arity},
    RLX_SCALAR_OPS(RLX_ROW)
#undef RLX_ROW
}};

class DimWalk {
 public:
  explicit DimWalk(const std::function<void(ExprId)>& visit) : visit_(visit) {}

  template <class S>
  void walk(const S& structure) {
    for_each_field<S>([&](const auto& field) {
      if (field.dim) {
        dims(structure.*field.member);
      } else {
        nested(structure.*field.member);
      }
    });
  }

 private:
  void dims(const ExprId& dim) { visit_(dim); }
  void dims(const std::vector<ExprId>& all) {
    for (ExprId dim : all) visit_(dim);
  }
  template <class T>
  void dims(const T&) {}  // a type that no dim field has

  template <class T>
  void nested(const T&) {}
  void nested(const RegionPtr& region) {
    if (region) walk(*region);
  }
  void nested(const std::vector<MovePart>& parts) {
    for (const MovePart& part : parts) walk(part);
  }
  void nested(const std::vector<std::vector<AxisMap>>& accesses) {
    for (const auto& access : accesses)
      for (const AxisMap& map : access) walk(map);
  }
  void nested(const std::vector<RegionOp>& ops) {
    for (const RegionOp& op : ops)
      if (op.kind == RegionOp::Kind::dim) visit_(op.dim);
  }

  const std::function<void(ExprId)>& visit_;
};

}  // namespace

const ScalarOpInfo& info_of(ScalarOp op) { return scalar_ops.at(size_t(op)); }

std::optional<ScalarOp> scalar_op(std::string_view name) {
  for (size_t k = 0; k < scalar_ops.size(); ++k)
    if (scalar_ops[k].name == name) return ScalarOp(k);
  return std::nullopt;
}

const char* name_of(const Prim& prim) {
  return std::visit(
      []<class P>(const P&) -> const char* { return Fields<P>::name.data(); }, prim);
}

void for_each_dim(const Prim& prim, const std::function<void(ExprId)>& visit) {
  std::visit([&](const auto& p) { DimWalk(visit).walk(p); }, prim);
}

}  // namespace rlx
