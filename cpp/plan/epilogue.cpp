// Recognises chains of named operations in epilogue Regions, walking from the result to the input.
#include "plan/epilogue.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "program/scalar_op.h"

namespace rlx::plan {
namespace {

using Kind = EpilogueOp::Kind;
using Extent = EpilogueOp::Extent;
constexpr float infinity = std::numeric_limits<float>::infinity();

struct Match {  // op(value `inner` of the region)
  EpilogueOp op;
  int inner;
};

struct Named {
  std::string_view name;
  Kind kind;
};

constexpr Named unary_kinds[] = {{"sigmoid", Kind::sigmoid},     {"tanh", Kind::tanh},
                                 {"gelu", Kind::gelu},           {"gelu_tanh", Kind::gelu_tanh},
                                 {"silu", Kind::silu},           {"abs", Kind::abs},
                                 {"sqrt", Kind::sqrt},           {"exp", Kind::exp}};
constexpr Named binary_kinds[] = {{"add", Kind::add}, {"sub", Kind::sub}, {"mul", Kind::mul},
                                  {"div", Kind::div}, {"max", Kind::max}, {"min", Kind::min}};

std::optional<Kind> find(std::span<const Named> table, std::string_view name) {
  for (const Named& row : table) {
    if (row.name == name) return row.kind;
  }
  return std::nullopt;
}

class Matcher {
 public:
  Matcher(const SelectRequest& request, const Region& region, int first_extra,
          size_t channel_axis, DType operands)
      : request_(request), region_(region), first_extra_(first_extra), channel_(channel_axis),
        operands_(operands) {
    for (ExprId dim : region.shape) shape_.push_back(request.dim(dim));
  }

  std::optional<Epilogue> chain() const {
    if (region_.results.size() != 1) return std::nullopt;
    Epilogue ops;
    int at = region_.results[0];
    while (!is_product(at)) {
      const std::optional<Match> match = match_at(at);
      if (!match) return std::nullopt;
      ops.push_back(match->op);
      at = match->inner;
    }
    std::reverse(ops.begin(), ops.end());
    return ops;
  }

 private:
  const RegionOp& op(int at) const { return region_.ops[size_t(at)]; }
  bool is_scalar(int at, std::string_view name) const {
    return op(at).kind == RegionOp::Kind::scalar && info_of(op(at).op).name == name;
  }

  bool is_product(int at) const {
    const RegionOp& o = op(at);
    return o.kind == RegionOp::Kind::load && o.args[0] == 0 && extent(0, shape_) == Extent::full;
  }

  std::optional<float> constant(int at) const {
    const RegionOp& o = op(at);
    if (o.dtype != DType::float32) return std::nullopt;
    if (o.kind == RegionOp::Kind::constant) return float(o.f);
    return std::nullopt;
  }

  int64_t number(ExprId id, int64_t absent) const { return id < 0 ? absent : request_.dim(id); }

  // How an input of `dims` lies against the output, if in one of the three named ways.
  std::optional<Extent> extent(size_t input, std::span<const int64_t> dims) const {
    const std::vector<AxisMap>& access = region_.accesses[input];
    const int64_t outputs = element_count(shape_);
    if (element_count(dims) == 1 && outputs != 1) return Extent::scalar;
    int axis = -1;
    int64_t covered = 1;
    bool only_channel = true;
    for (size_t k = 0; k < dims.size(); ++k) {
      if (dims[k] == 1) continue;
      const AxisMap& map = access[k];
      if (map.axis <= axis || number(map.div, 1) != 1 || number(map.mod, 0) != 0) {
        return std::nullopt;
      }
      axis = map.axis;
      if (dims[k] != shape_[size_t(axis)]) return std::nullopt;
      covered *= dims[k];
      only_channel = only_channel && size_t(axis) == channel_;
    }
    if (covered == outputs) return Extent::full;
    return only_channel ? std::optional(Extent::channel) : std::nullopt;
  }

  // Sets the op's operand if `at` loads an extra input in a named way.
  bool take_operand(int at, EpilogueOp& result) const {
    const RegionOp& o = op(at);
    if (o.kind != RegionOp::Kind::load || o.args[0] == 0 || o.dtype != DType::float32) {
      return false;
    }
    result.operand = first_extra_ + o.args[0] - 1;
    const TensorDesc& desc = request_.inputs[size_t(result.operand)];
    const std::optional<Extent> found = extent(size_t(o.args[0]), desc.shape);
    if (!found || !desc.contiguous() || desc.dtype != operands_) return false;
    result.extent = *found;
    return true;
  }

  std::optional<Match> match_at(int at) const {
    const RegionOp& o = op(at);
    if (o.kind != RegionOp::Kind::scalar || o.dtype != DType::float32) return std::nullopt;
    if (auto match = match_hardswish(at)) return match;
    if (auto match = match_clip(at)) return match;
    if (auto match = match_leaky(at)) return match;
    const std::string_view name = info_of(o.op).name;
    if (const auto kind = find(unary_kinds, name)) return Match{{*kind, 0, 0, -1, {}}, o.args[0]};
    if (name == "neg") return Match{{Kind::linear, -1.0f, 0.0f, -1, {}}, o.args[0]};
    if (const auto kind = find(binary_kinds, name)) return match_binary(o, *kind);
    return std::nullopt;
  }

  std::optional<Match> match_binary(const RegionOp& o, Kind kind) const {
    for (const auto& [inner, other] : {std::pair{0, 1}, std::pair{1, 0}}) {
      const bool swapped = inner == 1;
      if (swapped && (kind == Kind::sub || kind == Kind::div)) continue;
      EpilogueOp result{kind, 0.0f, 0.0f, -1, {}};
      if (const auto c = constant(o.args[other])) {
        return Match{with_constant(kind, *c), o.args[inner]};
      }
      if (take_operand(o.args[other], result)) return Match{result, o.args[inner]};
    }
    if (const auto c = constant(o.args[0]); c && kind == Kind::sub) {
      return Match{{Kind::linear, -1.0f, *c, -1, {}}, o.args[1]};
    }
    return std::nullopt;
  }

  static EpilogueOp with_constant(Kind kind, float c) {
    switch (kind) {
      case Kind::add: return {Kind::linear, 1.0f, c, -1, {}};
      case Kind::sub: return {Kind::linear, 1.0f, -c, -1, {}};
      case Kind::mul: return {Kind::linear, c, 0.0f, -1, {}};
      case Kind::div: return {Kind::linear, 1.0f / c, 0.0f, -1, {}};
      case Kind::max:
        if (c == 0.0f) return {Kind::relu, 0.0f, 0.0f, -1, {}};
        return {Kind::clip, c, infinity, -1, {}};
      default: return {Kind::clip, -infinity, c, -1, {}};
    }
  }

  // The other argument of the commutative function `name` whose one argument is a constant.
  std::optional<std::pair<float, int>> split_constant(int at, std::string_view name) const {
    if (!is_scalar(at, name)) return std::nullopt;
    const int* args = op(at).args;
    if (const auto c = constant(args[1])) return std::pair{*c, args[0]};
    if (const auto c = constant(args[0])) return std::pair{*c, args[1]};
    return std::nullopt;
  }

  // min(max(x, low), high), in either order when the bounds are in order.
  std::optional<Match> match_clip(int at) const {
    for (const auto& [outer_name, inner_name] :
         {std::pair{"min", "max"}, std::pair{"max", "min"}}) {
      const auto outer = split_constant(at, outer_name);
      if (!outer) continue;
      const auto inner = split_constant(outer->second, inner_name);
      if (!inner) continue;
      const bool max_first = std::string_view(outer_name) == "min";
      const float low = max_first ? inner->first : outer->first;
      const float high = max_first ? outer->first : inner->first;
      if (low <= high) return Match{{Kind::clip, low, high, -1, {}}, inner->second};
    }
    return std::nullopt;
  }

  // alpha * x + beta with constants, either of which may be missing.
  std::optional<Match> match_linear(int at) const {
    float alpha = 1.0f, beta = 0.0f;
    if (const auto sum = split_constant(at, "add")) beta = sum->first, at = sum->second;
    if (const auto product = split_constant(at, "mul")) {
      alpha = product->first, at = product->second;
    } else if (is_scalar(at, "div")) {
      const auto c = constant(op(at).args[1]);
      if (!c) return std::nullopt;
      alpha = 1.0f / *c, at = op(at).args[0];
    }
    return Match{{Kind::linear, alpha, beta, -1, {}}, at};
  }

  std::optional<Match> match_hardswish(int at) const {
    if (!is_scalar(at, "mul")) return std::nullopt;
    for (const auto& [x, gate] : {std::pair{0, 1}, std::pair{1, 0}}) {
      const auto clip = match_clip(op(at).args[gate]);
      if (!clip || clip->op.alpha != 0.0f || clip->op.beta != 1.0f) continue;
      const auto linear = match_linear(clip->inner);
      if (!linear || linear->inner != op(at).args[x]) continue;
      return Match{{Kind::hardswish, linear->op.alpha, linear->op.beta, -1, {}}, linear->inner};
    }
    return std::nullopt;
  }

  // select(x < 0, alpha * x, x) or select(x >= 0, x, alpha * x).
  std::optional<Match> match_leaky(int at) const {
    if (!is_scalar(at, "select")) return std::nullopt;
    const int* args = op(at).args;
    const bool less = is_scalar(args[0], "lt") || is_scalar(args[0], "le");
    const bool greater = is_scalar(args[0], "gt") || is_scalar(args[0], "ge");
    if (!less && !greater) return std::nullopt;
    const int x = op(args[0]).args[0];
    const auto bound = constant(op(args[0]).args[1]);
    const auto scaled = split_constant(args[less ? 1 : 2], "mul");
    if (!bound || *bound != 0.0f || !scaled || scaled->second != x) return std::nullopt;
    if (args[less ? 2 : 1] != x) return std::nullopt;
    return Match{{Kind::relu, scaled->first, 0.0f, -1, {}}, x};
  }

  const SelectRequest& request_;
  const Region& region_;
  int first_extra_;
  size_t channel_;
  DType operands_;
  Dims shape_;
};

}  // namespace

std::optional<Epilogue> match_epilogue(const SelectRequest& request, const RegionPtr& region,
                                       int first_extra, size_t channel_axis, DType operands) {
  if (!region) return Epilogue{};
  return Matcher(request, *region, first_extra, channel_axis, operands).chain();
}

}  // namespace rlx::plan
