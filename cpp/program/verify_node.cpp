// What a single primitive must satisfy: operand counts, ranks, types, fields, Regions.
#include "program/verify_node.h"

#include <algorithm>

#include "core/packed.h"
#include "program/fields.h"
#include "program/names.h"
#include "program/scalar_op.h"

namespace rlx {
namespace {

std::string number(int64_t n) { return std::to_string(n); }

class NodeCheck {
 public:
  NodeCheck(const Program& program, const Node& node) : program_(program), node_(node) {}

  void run() {
    std::visit([&](const auto& prim) { check(prim); }, node_.prim);
  }

 private:
  // -- operands ------------------------------------------------------------------------------

  const Value* value(ValueId id) const { return id < 0 ? nullptr : &program_.values[size_t(id)]; }
  const Value* input(size_t k) const { return value(node_.inputs.at(k)); }
  const Value* output(size_t k) const { return value(node_.outputs.at(k)); }
  int rank(size_t k) const { return int(input(k)->shape.size()); }
  int out_rank() const { return int(output(0)->shape.size()); }

  // Exact numbers of operands; the first `required` inputs, the extras and output 0 are present.
  void operands(size_t required, size_t fixed, size_t extras, size_t outputs) const {
    require(node_.inputs.size() == fixed + extras,
            "expected " + number(int64_t(fixed + extras)) + " inputs, got " +
                number(int64_t(node_.inputs.size())));
    require(node_.outputs.size() == outputs, "expected " + number(int64_t(outputs)) +
                                                 " outputs, got " +
                                                 number(int64_t(node_.outputs.size())));
    for (size_t k = 0; k < node_.inputs.size(); ++k)
      require(input(k) != nullptr || (k >= required && k < fixed),
              "input " + number(int64_t(k)) + " is absent");
    require(outputs == 0 || output(0) != nullptr, "output 0 is absent");
    tensors_only();
  }

  void tensors_only() const {
    for (const auto* list : {&node_.inputs, &node_.outputs})
      for (ValueId id : *list)
        require(id < 0 || value(id)->kind == ValueKind::tensor, "an operand is no tensor");
  }

  static size_t extras_of(const RegionPtr& region) {
    if (!region) return 0;
    require(!region->accesses.empty(), "a fused region has no load 0");
    return region->accesses.size() - 1;
  }

  static void axis_in(int axis, int rank) {
    require(axis >= 0 && axis < rank,
            "axis " + number(axis) + " is not in a rank of " + number(rank));
  }

  void out_rank_is(int rank) const {
    require(out_rank() == rank,
            "expected an output of rank " + number(rank) + ", got " + number(out_rank()));
  }

  void out_type_is(size_t k, DType dtype) const {
    require(output(k) == nullptr || output(k)->dtype == dtype,
            "output " + number(int64_t(k)) + " must be " + name_of(dtype));
  }

  // -- regions -------------------------------------------------------------------------------

  // loads[k] is the value that load k reads; null for one that the primitive computes.
  void region(const Region& r, const std::vector<const Value*>& loads) const {
    require(r.accesses.size() == loads.size(), "a region has another number of loads");
    const int space = int(r.shape.size());
    for (size_t k = 0; k < loads.size(); ++k) {
      require(loads[k] == nullptr || r.accesses[k].size() == loads[k]->shape.size(),
              "access " + number(int64_t(k)) + " has another rank than its value");
      for (const AxisMap& map : r.accesses[k])
        require(map.axis >= -1 && map.axis < space, "an access maps an axis that is not there");
    }
    for (size_t k = 0; k < r.ops.size(); ++k) region_op(r, int(k), loads);
    require(!r.results.empty(), "a region has no result");
    for (int result : r.results)
      require(result >= 0 && size_t(result) < r.ops.size(), "a region's result does not exist");
  }

  static void region_op(const Region& r, int at, const std::vector<const Value*>& loads) {
    const RegionOp& op = r.ops[size_t(at)];
    const std::string where = "region op " + number(at);
    switch (op.kind) {
      case RegionOp::Kind::load:
        require(op.args[0] >= 0 && size_t(op.args[0]) < loads.size(), where + " loads nothing");
        require(loads[size_t(op.args[0])] == nullptr ||
                    loads[size_t(op.args[0])]->dtype == op.dtype,
                where + " loads another element type");
        return;
      case RegionOp::Kind::index:
        axis_in(op.args[0], int(r.shape.size()));
        require(op.dtype == DType::int64, where + " must be int64");
        return;
      case RegionOp::Kind::constant: return;
      case RegionOp::Kind::dim: require(op.dim >= 0, where + " has no expression"); return;
      default: break;
    }
    const int arity = op.kind == RegionOp::Kind::cast ? 1 : info_of(op.op).arity;
    for (int k = 0; k < arity; ++k)
      require(op.args[k] >= 0 && op.args[k] < at, where + " precedes its argument");
  }

  // A Region fused behind or before a primitive: load 0 is `first`, the rest are extras.
  void fused(const RegionPtr& r, const Value* first, size_t first_extra, size_t results) const {
    if (!r) return;
    std::vector<const Value*> loads{first};
    for (size_t k = 1; k < r->accesses.size(); ++k)
      loads.push_back(input(first_extra + k - 1));
    region(*r, loads);
    require(r->results.size() == results, "a fused region has another number of results");
  }

  // The whole input list goes through a prologue; without one there is a single input.
  void prologue(const RegionPtr& r) const {
    const size_t count = r ? r->accesses.size() : 1;
    operands(count, count, 0, 1);
    if (!r) return;
    std::vector<const Value*> loads;
    for (size_t k = 0; k < count; ++k) loads.push_back(input(k));
    region(*r, loads);
    require(r->results.size() == 1, "a prologue has one result");
  }
  int prologue_rank(const RegionPtr& r) const { return r ? int(r->shape.size()) : rank(0); }

  // -- one check for each primitive -----------------------------------------------------------

  void check(const Region& r) const {
    operands(r.accesses.size(), r.accesses.size(), 0, r.results.size());
    std::vector<const Value*> loads;
    for (size_t k = 0; k < r.accesses.size(); ++k) loads.push_back(input(k));
    region(r, loads);
    for (size_t k = 0; k < r.results.size(); ++k) {
      if (output(k) == nullptr) continue;
      require(output(k)->shape.size() == r.shape.size(), "a result has another rank");
      out_type_is(k, r.ops[size_t(r.results[k])].dtype);
    }
  }

  void check(const Reduce& r) const {
    prologue(r.prologue);
    const int rank = prologue_rank(r.prologue);
    for (int axis : r.axes) axis_in(axis, rank);
    require(std::ranges::is_sorted(r.axes) && std::ranges::adjacent_find(r.axes) == r.axes.end(),
            "the axes are not sorted and distinct");
    out_rank_is(r.keepdims ? rank : rank - int(r.axes.size()));
    if (r.kind != ReduceKind::argmax && r.kind != ReduceKind::argmin) return;
    require(r.axes.size() == 1, "argmax and argmin take one axis");
    out_type_is(0, DType::int64);
  }

  void check(const Cumulate& c) const {
    operands(1, 1, 0, 1);
    axis_in(c.axis, rank(0));
    out_rank_is(rank(0));
  }

  void check(const MatMul& m) const {
    operands(2, MatMul::operands, extras_of(m.epilogue), 1);
    require(rank(0) >= 2 && rank(1) >= 2, "a product takes ranks of at least 2");
    const bool grouped = input(5) != nullptr;
    out_rank_is(grouped ? 2 : std::max(rank(0), rank(1)));
    require(m.accumulate != DType::none, "a product has no accumulation type");
    if (grouped) {
      require(rank(0) == 2 && rank(1) == 3 && rank(5) == 1,
              "with groups a has rank 2, b rank 3, and each row of a one group");
      const DType ids = input(5)->dtype;
      require(ids == DType::int32 || ids == DType::int64, "groups are int32 or int64");
    }
    require((m.b_type != DType::none) == (input(4) != nullptr),
            "a quantised b, and no other, has scales");
    if (m.b_type != DType::none) quantised(m);
    fused(m.epilogue, nullptr, MatMul::operands, 1);
  }

  void quantised(const MatMul& m) const {
    const DType a = input(0)->dtype, b = input(1)->dtype;
    const bool narrow = bits_of(m.b_type) < 8;
    require(bits_of(m.b_type) <= 8 && b == (narrow ? DType::uint8 : m.b_type),
            "a quantised b holds another type");
    require(m.trans_b && !m.trans_a && input(2) == nullptr, "only b [.., N, C] can be quantised");
    require(a == DType::float32 || is_half(a),
            "a quantised b is multiplied by float32, float16 or bfloat16");
    require(m.block_k > 0 && m.block_n > 0, "blocks must not be empty");
    require(is_float(input(4)->dtype) && rank(4) == rank(1), "scales are floats of b's rank");
  }

  void windows(const std::vector<int>& strides, const std::vector<int>& dilations,
               const std::vector<ExprId>& begin, const std::vector<ExprId>& end) const {
    require(rank(0) >= 3 && rank(0) <= 5, "windows have 1 to 3 spatial dims");
    const size_t spatial = size_t(rank(0)) - 2;
    require(strides.size() == spatial && dilations.size() == spatial && begin.size() == spatial &&
                end.size() == spatial,
            "expected one stride, dilation and pair of pads for each spatial dim");
    const auto positive = [](int n) { return n > 0; };
    require(std::ranges::all_of(strides, positive) && std::ranges::all_of(dilations, positive),
            "strides and dilations must be positive");
    out_rank_is(rank(0));
  }

  void check(const Conv& c) const {
    operands(2, 4, extras_of(c.epilogue), 1);
    require(rank(1) == rank(0), "x and w differ in rank");
    windows(c.strides, c.dilations, c.pads_begin, c.pads_end);
    require(c.groups > 0, "groups must be positive");
    require(c.accumulate != DType::none, "a convolution has no accumulation type");
    fused(c.epilogue, nullptr, 4, 1);
  }

  void check(const Pool& p) const {
    operands(1, 1, 0, 2);
    windows(p.strides, p.dilations, p.pads_begin, p.pads_end);
    require(p.kernel.size() == p.strides.size(), "expected a kernel size for each spatial dim");
    out_type_is(1, DType::int64);
  }

  void check(const Softmax& s) const {
    prologue(s.prologue);
    axis_in(s.axis, prologue_rank(s.prologue));
    out_rank_is(prologue_rank(s.prologue));
  }

  void check(const Norm& n) const {
    operands(1, 3, extras_of(n.prologue) + extras_of(n.epilogue), 4);
    axis_in(n.axis, rank(0));
    require(n.groups > 0, "groups must be positive");
    out_rank_is(rank(0));
    fused(n.prologue, input(0), 3, 1);
    fused(n.epilogue, nullptr, 3 + extras_of(n.prologue), 1);
  }

  void check(const Attention& a) const {
    operands(3, 3, extras_of(a.score), 1);
    for (size_t k = 0; k < 3; ++k) require(rank(k) == 4, "q, k and v have rank 4");
    out_rank_is(4);
    require(a.causal_offset >= 0, "attention has no causal offset");
    fused(a.score, nullptr, 3, 1);
  }

  static void index_type(const Value* indices) {
    require(is_integer(indices->dtype), "indices must be integers");
  }

  void check(const Gather& g) const {
    operands(2, 2, 0, 1);
    index_type(input(1));
    if (g.kind == GatherKind::nd) {
      require(g.batch_dims >= 0 && g.batch_dims < std::min(rank(0), rank(1)),
              "batch_dims is out of range");
      return;
    }
    axis_in(g.axis, rank(0));
    out_rank_is(g.kind == GatherKind::elements ? rank(1) : rank(0) + rank(1) - 1);
    require(g.kind != GatherKind::elements || rank(1) == rank(0), "indices have another rank");
  }

  void check(const Scatter& s) const {
    operands(3, 3, 0, 1);
    index_type(input(1));
    out_rank_is(rank(0));
    if (s.kind == ScatterKind::nd) {
      require(rank(1) >= 1, "the indices are a scalar");
      return;
    }
    axis_in(s.axis, rank(0));
    require(rank(1) == rank(0) && rank(2) == rank(0), "indices or updates have another rank");
  }

  void check(const Move& m) const {
    size_t count = size_t(std::max(m.fill, -1) + 1);
    for (const MovePart& part : m.parts) {
      require(part.input >= 0, "a part has no input");
      count = std::max(count, size_t(part.input) + 1);
    }
    operands(count, count, 0, 1);
    for (const MovePart& part : m.parts) move_part(part);
    require(m.mode == MoveMode::none || m.mode == MoveMode::constant || m.parts.size() == 1,
            "this mode takes one part");
    require(m.fill < 0 || m.mode == MoveMode::constant, "only the constant mode has a fill");
    for (size_t k = 0; k < count; ++k)
      require(input(k)->dtype == output(0)->dtype, "an input has another element type");
  }

  void move_part(const MovePart& part) const {
    const size_t size = size_t(out_rank());
    require(rank(size_t(part.input)) == out_rank(), "a part has another rank than the output");
    require(part.perm.size() == size && part.starts.size() == size && part.steps.size() == size &&
                part.extents.size() == size && part.offsets.size() == size,
            "the lists of a part differ in length");
    std::vector<int> sorted = part.perm;
    std::ranges::sort(sorted);
    for (size_t k = 0; k < size; ++k)
      require(sorted[k] == int(k), "the perm of a part is no permutation");
  }

  void check(const Resize& r) const {
    operands(1, 1, 0, 1);
    for (int axis : r.axes) axis_in(axis, rank(0));
    require(r.scales.size() == r.axes.size(), "expected one scale for each axis");
    require(r.roi.empty() || r.roi.size() == 2 * r.axes.size(), "roi has the wrong length");
    out_rank_is(rank(0));
  }

  void check(const Sort& s) const {
    const bool unique = s.kind == SortKind::unique, compress = s.kind == SortKind::compress;
    const size_t inputs = compress ? 2 : 1;
    operands(inputs, inputs, 0, unique ? 5 : 2);
    const bool flat = s.kind == SortKind::nonzero || ((unique || compress) && s.axis == -1);
    if (!flat) axis_in(s.axis, rank(0));
    require(s.kind != SortKind::topk || s.k >= 0, "topk has no k");
    out_type_is(node_.outputs.size() - 1, DType::int64);
    require(!compress || input(1)->dtype == DType::boolean, "the condition must be bool");
  }

  void check(const NonMaxSuppression&) const {
    operands(2, 5, 0, 2);
    require(rank(0) == 3 && rank(1) == 3, "boxes and scores have rank 3");
    out_type_is(0, DType::int64);
    out_type_is(1, DType::int64);
  }

  void check(const Random& r) const {
    operands(0, 1, 0, 1);
    const bool reads = r.kind == RandomKind::bernoulli || r.kind == RandomKind::multinomial;
    require(reads == (input(0) != nullptr), "this kind of random numbers takes another input");
  }

  void check(const Recurrent& r) const {
    operands(3, 12, 0, 3);
    for (size_t k = 0; k < 3; ++k) require(rank(k) == 3, "x, w and r have rank 3");
    require(r.hidden_size > 0, "hidden_size must be positive");
    if (!is_integer(input(1)->dtype)) return;
    require(r.kind == RecurrentKind::lstm && input(0)->dtype == DType::float32 &&
                input(1)->dtype == input(2)->dtype && size_of(input(1)->dtype) == 1,
            "integer weights are 8-bit ones of a float32 lstm, both of one type");
    for (size_t k = 8; k < 12; ++k) require(input(k) != nullptr, "integer weights have no scales");
  }

  void check(const Fft& f) const {
    operands(1, 1, 0, 1);
    axis_in(f.axis, rank(0) - 1);
    require(f.length >= 0, "Fft has no length");
    out_rank_is(rank(0));
  }

  void check(const Map& m) const {
    tensors_only();
    require(!m.body.empty() && m.items >= 0, "Map has no body or no items");
    for (ValueId v : node_.outputs) require(v >= 0, "an output of Map is absent");
  }

  const Program& program_;
  const Node& node_;
};

}  // namespace

std::string value_text(const Program& program, ValueId id) {
  const std::string& name = program.values[size_t(id)].name;
  return "%" + number(id) + (name.empty() ? "" : " '" + name + "'");
}

void verify_node(const Program& program, const Node& node) { NodeCheck(program, node).run(); }

}  // namespace rlx
