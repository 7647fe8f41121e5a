// Selects the nodes of a Segment one by one, then lays out their memory together.
#include "exec/segment.h"

#include <algorithm>

#include "exec/views.h"
#include "plan/in_place.h"

namespace rlx {
namespace {

class SegmentBinder {
 public:
  SegmentBinder(const BindRequest& request, const Segment& segment, std::span<const Kept> kept,
                Plan& plan)
      : request_(request), facts_(request.facts), segment_(segment), kept_(kept), plan_(plan),
        bounds_(bounds_of(facts_, plan.symbols, plan.numbers)),
        views_(facts_, plan.stage, numbers()) {}

  void run() {
    plan_.nodes.resize(segment_.nodes.size());
    values_.resize(facts_.program->values.size(), {0, true, false});
    extents_ = request_.with_state ? planned_extents() : std::vector<int64_t>{};
    for (size_t t = 0; t < segment_.nodes.size(); ++t) select(t);
    lay_out();
    for (size_t t = 0; t < segment_.nodes.size(); ++t) place_operands(t);
    keep();
  }

  // For constants that have other bytes: `adopt` takes the selections over, else they are only
  // made so that packed forms are.
  void select_again(const std::vector<bool>& replaced, bool adopt) {
    const auto reads = [&](ValueId v) {
      return v >= 0 && facts_.is_constant(v) &&
             replaced[size_t(facts_.value(facts_.root[size_t(v)]).constant)];
    };
    extents_ = request_.with_state ? planned_extents() : std::vector<int64_t>{};
    for (size_t t = 0; t < segment_.nodes.size(); ++t) {
      const Node& node = segment_.nodes[t];
      if (views_.made_by(t) || !std::ranges::any_of(node.inputs, reads)) continue;
      describe(node);
      Selection made = select_node(request_, node, descs_, plan_.numbers);
      if (!adopt) continue;
      plan_.nodes[t].selection = std::move(made);
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        Operand& operand = plan_.operands[plan_.nodes[t].first_operand + i];
        if (operand.place != Operand::Place::constant || !reads(node.inputs[i])) continue;
        const auto held = [&](const auto& upload) { return upload.get() == operand.constant; };
        auto& upload = *std::ranges::find_if(plan_.uploads, held);
        upload = request_.device.upload(facts_.constant(node.inputs[i]));
        operand.constant = upload.get();
      }
    }
  }

 private:
  Numbers numbers() const { return {plan_.numbers, bounds_}; }

  // What each state's buffer must hold along its axis at the planned dims.
  std::vector<int64_t> planned_extents() const {
    std::vector<int64_t> extents;
    for (const StatePair& pair : facts_.program->states) {
      const Value& value = facts_.value(facts_.program->outputs[size_t(pair.output)]);
      extents.push_back(numbers()[value.shape[size_t(pair.axis)]].i);
    }
    return extents;
  }

  void describe(const Node& node) {
    describe_node(facts_, node, numbers(), extents_, descs_);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (const auto view = views_.of(node.inputs[i])) descs_[i].strides = view->strides;
    }
  }

  void select(size_t t) {
    const Node& node = segment_.nodes[t];
    PlannedNode& planned = plan_.nodes[t];
    planned.node = &node;
    if (const View* view = views_.made_by(t)) {
      planned.view = *view;
      planned.selection.rung = "view";
      planned.selection.reason = "its readers take strides";
      pairs_.emplace_back();
      return;
    }
    describe(node);
    planned.selection = select_node(request_, node, descs_, plan_.numbers);
    planned.empty = planned.selection.steps.empty();
    planned.varying = facts_.depends_on_capacity(node);
    plan_.creation_seconds += planned.selection.creation_seconds;
    const auto inputs = std::span<const TensorDesc>(descs_).first(node.inputs.size());
    const auto outputs = std::span<const TensorDesc>(descs_).subspan(inputs.size());
    pairs_.push_back(plan::in_place_pairs(node.prim, inputs, outputs, plan_.numbers));
    if (planned.varying) forbid_chance_pairs(node, pairs_.back());
    for (const TensorDesc& desc : descs_) plan_.traffic += desc.bytes();
    for (size_t i = 0; i < outputs.size(); ++i) define(node.outputs[i], outputs[i]);
  }

  // Dims that are equal at the planned capacity may differ at the actual size.
  void forbid_chance_pairs(const Node& node, plan::InPlacePairs& pairs) const {
    plan::InPlacePairs sure;
    for (const plan::InPlacePair& pair : pairs) {
      const Value& x = facts_.value(node.inputs[size_t(pair.input)]);
      const Value& y = facts_.value(node.outputs[size_t(pair.output)]);
      if (x.shape == y.shape) sure.push_back(pair);
    }
    pairs = std::move(sure);
  }

  void define(ValueId v, const TensorDesc& desc) {
    if (v < 0) return;
    const bool in_state = request_.with_state && facts_.state_of[size_t(v)] >= 0;
    values_[size_t(v)] = {
        .bytes = desc.bytes(),
        .outside = in_state || facts_.direct_output[size_t(v)] >= 0,
        .kept = facts_.last_read_in[size_t(v)] > int32_t(plan_.stage)};
    const int32_t output = facts_.direct_output[size_t(v)];
    if (output < 0 || in_state) return;
    const ValueId shaped = facts_.program->outputs[size_t(output)];
    plan_.direct.push_back({size_t(output), v, dims_of(facts_.value(shaped), numbers())});
  }

  void lay_out() {
    std::vector<std::vector<int32_t>> reads(segment_.nodes.size());
    std::vector<plan::NodeUse> uses(segment_.nodes.size());
    std::vector<int32_t> last_read(values_.size(), -1);
    for (size_t t = 0; t < uses.size(); ++t) {
      if (plan_.nodes[t].view) continue;  // what reads it reads its source
      for (ValueId v : segment_.nodes[t].inputs) {
        const auto view = views_.of(v);
        reads[t].push_back(v < 0 ? -1 : view ? view->source : facts_.root[size_t(v)]);
        if (v >= 0) last_read[size_t(reads[t].back())] = int32_t(t);
      }
      uses[t] = {reads[t], segment_.nodes[t].outputs,
                 {pairs_[t].data(), pairs_[t].size()}, plan_.nodes[t].selection.workspace};
    }
    std::vector<plan::Reserved> reserved;
    for (const Kept& k : kept_) {
      const bool later = facts_.last_read_in[size_t(k.root)] > int32_t(plan_.stage);
      const int32_t last = later ? int32_t(uses.size()) : last_read[size_t(k.root)];
      reserved.push_back({{k.bytes, 0, std::max(last, 0)}, k.offset});
    }
    const size_t gap = request_.check_memory ? canary_bytes : 0;
    plan_.storage = plan::lay_out(values_, uses, reserved, gap);
    plan_.arena_bytes = plan_.storage.bytes;
    for (size_t t = 0; t < uses.size(); ++t) {
      plan_.nodes[t].in_place = plan_.storage.in_place[t];
      const int32_t block = plan_.storage.workspace_block[t];
      if (block >= 0) plan_.nodes[t].workspace_offset = plan_.storage.offsets[size_t(block)];
    }
  }

  void place_operands(size_t t) {
    const Node& node = segment_.nodes[t];
    plan_.nodes[t].first_operand = uint32_t(plan_.operands.size());
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const bool unread = i < 64 && plan_.nodes[t].selection.unread >> i & 1;
      plan_.operands.push_back(unread ? Operand{} : operand(node.inputs[i]));
    }
    for (ValueId v : node.outputs) plan_.operands.push_back(operand(v));
  }

  Operand operand(ValueId v) {
    if (v < 0) return {};
    if (const auto view = views_.of(v)) {
      Operand source = operand(view->source);
      const size_t skipped = size_t(view->offset) * size_of(facts_.value(v).dtype);
      source.offset += skipped;
      source.bytes -= skipped;
      return source;
    }
    const ValueId root = facts_.root[size_t(v)];
    if (facts_.is_constant(v)) {
      plan_.uploads.push_back(request_.device.upload(facts_.constant(v)));
      return {Operand::Place::constant, root, 0, plan_.uploads.back().get()};
    }
    if (plan_.storage.block_of[size_t(root)] >= 0) {
      const size_t block = size_t(plan_.storage.block_of[size_t(root)]);
      return {Operand::Place::arena, root, plan_.storage.offsets[block], nullptr,
              plan_.storage.blocks[block].bytes};
    }
    for (const Kept& k : kept_) {
      if (k.root == root) return {Operand::Place::arena, root, k.offset, nullptr, k.bytes};
    }
    return {Operand::Place::outside, root, 0, nullptr};
  }

  void keep() {
    const int32_t stage = int32_t(plan_.stage);
    for (const Kept& k : kept_) {
      if (facts_.last_read_in[size_t(k.root)] > stage) plan_.kept.push_back(k);
    }
    for (size_t v = 0; v < values_.size(); ++v) {
      if (!values_[v].kept || plan_.storage.block_of[v] < 0) continue;
      plan_.kept.push_back(
          {ValueId(v), plan_.storage.offset_of(int32_t(v)), values_[v].bytes});
    }
  }

  const BindRequest& request_;
  const Facts& facts_;
  const Segment& segment_;
  std::span<const Kept> kept_;
  Plan& plan_;
  std::vector<Number> bounds_;
  Views views_;
  std::vector<int64_t> extents_;
  std::vector<TensorDesc> descs_;
  std::vector<plan::StoredValue> values_;
  std::vector<plan::InPlacePairs> pairs_;
};

}  // namespace

void bind_segment(const BindRequest& request, const Segment& segment, std::span<const Kept> kept,
                  Plan& plan) {
  SegmentBinder(request, segment, kept, plan).run();
}

void select_again(const BindRequest& request, const Segment& segment,
                  const std::vector<bool>& replaced, bool adopt, Plan& plan) {
  SegmentBinder(request, segment, {}, plan).select_again(replaced, adopt);
}

}  // namespace rlx
