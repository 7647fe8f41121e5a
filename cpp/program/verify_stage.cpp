// What the stages other than segments must satisfy.
#include "program/verify_node.h"

namespace rlx {
namespace {

void append(std::vector<ValueId>& all, const std::vector<ValueId>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

void require_count(size_t got, size_t expected, const char* what) {
  require(got == expected, std::string(what) + ": expected " + std::to_string(expected) +
                               ", got " + std::to_string(got));
}

class ChildCheck {
 public:
  ChildCheck(const Program& outer, const ProgramPtr& child) : outer_(outer), child_(child.get()) {
    require(child != nullptr, "a child program is missing");
  }

  // `extra_rank`: dims that a value has outside and not inside (stacked or sliced axes).
  void input(size_t position, ValueId outside, int extra_rank = 0) const {
    same(outside, child_->inputs.at(position), extra_rank);
  }
  void output(size_t position, ValueId outside, int extra_rank = 0) const {
    same(outside, child_->outputs.at(position), extra_rank);
  }
  void is_scalar(ValueId inside, DType dtype) const {
    const Value& value = child_->values[size_t(inside)];
    require(value.kind == ValueKind::tensor && value.dtype == dtype,
            value_text(*child_, inside) + " of a body must be a " + name_of(dtype) + " tensor");
  }
  const Program& program() const { return *child_; }

 private:
  void same(ValueId outside, ValueId inside, int extra_rank) const {
    require(outside >= 0, "an absent value is passed to a child program");
    const Value& a = outer_.values[size_t(outside)];
    const Value& b = child_->values[size_t(inside)];
    // The elements of a sequence may be typed only by what is put into it.
    require(a.kind == b.kind && (a.kind != ValueKind::tensor || a.dtype == b.dtype),
            value_text(outer_, outside) + " is of another type inside a child program");
    require(a.kind != ValueKind::tensor || a.shape.size() == b.shape.size() + size_t(extra_rank),
            value_text(outer_, outside) + " is of another rank inside a child program");
  }

  const Program& outer_;
  const Program* child_;
};

void require_outputs(const std::vector<ValueId>& outputs) {
  for (ValueId v : outputs) require(v >= 0, "an output of a stage is absent");
}

struct Arity {
  size_t least, most;
};

Arity arity_of(SequenceKind kind, size_t given) {
  switch (kind) {
    case SequenceKind::construct: return {1, given < 1 ? 1 : given};
    case SequenceKind::empty: return {0, 0};
    case SequenceKind::at: return {2, 2};
    case SequenceKind::insert: return {2, 3};
    case SequenceKind::erase: case SequenceKind::split: return {1, 2};
    case SequenceKind::optional: case SequenceKind::has_element: return {0, 1};
    default: return {1, 1};  // length, concat, get_element
  }
}

}  // namespace

std::vector<ValueId> stage_inputs(const If& stage) {
  std::vector<ValueId> all{stage.condition};
  append(all, stage.captures);
  return all;
}

std::vector<ValueId> stage_inputs(const Loop& stage) {
  std::vector<ValueId> all{stage.trip_count, stage.condition};
  append(all, stage.carried);
  append(all, stage.captures);
  return all;
}

std::vector<ValueId> stage_inputs(const Scan& stage) {
  std::vector<ValueId> all = stage.states;
  append(all, stage.scan_inputs);
  append(all, stage.captures);
  return all;
}

void verify_stage(const Program& program, const If& stage) {
  require(stage.condition >= 0, "If without a condition");
  require_outputs(stage.outputs);
  for (const ProgramPtr& branch : {stage.then_program, stage.else_program}) {
    const ChildCheck child(program, branch);
    require_count(child.program().inputs.size(), stage.captures.size(), "inputs of a branch");
    require_count(child.program().outputs.size(), stage.outputs.size(), "outputs of a branch");
    for (size_t k = 0; k < stage.captures.size(); ++k) child.input(k, stage.captures[k]);
    for (size_t k = 0; k < stage.outputs.size(); ++k) child.output(k, stage.outputs[k]);
  }
}

void verify_stage(const Program& program, const Loop& stage) {
  const ChildCheck body(program, stage.body);
  const size_t carried = stage.carried.size(), scans = size_t(stage.scans);
  require(stage.scans >= 0, "negative number of scan outputs");
  require_count(body.program().inputs.size(), 2 + carried + stage.captures.size(),
                "inputs of a Loop body");
  require_count(body.program().outputs.size(), 1 + carried + scans, "outputs of a Loop body");
  require_count(stage.outputs.size(), carried + scans, "outputs of a Loop");
  body.is_scalar(body.program().inputs[0], DType::int64);
  body.is_scalar(body.program().inputs[1], DType::boolean);
  body.is_scalar(body.program().outputs[0], DType::boolean);
  for (size_t k = 0; k < carried; ++k) {
    body.input(2 + k, stage.carried[k]);
    body.output(1 + k, stage.carried[k]);
    body.output(1 + k, stage.outputs[k]);
  }
  for (size_t k = 0; k < scans; ++k) body.output(1 + carried + k, stage.outputs[carried + k], 1);
  for (size_t k = 0; k < stage.captures.size(); ++k) body.input(2 + carried + k, stage.captures[k]);
}

void verify_stage(const Program& program, const Scan& stage) {
  const ChildCheck body(program, stage.body);
  const size_t states = stage.states.size(), scanned = stage.scan_inputs.size();
  require_count(body.program().inputs.size(), states + scanned + stage.captures.size(),
                "inputs of a Scan body");
  require_count(stage.outputs.size(), body.program().outputs.size(), "outputs of a Scan");
  require(stage.outputs.size() >= states, "a Scan has fewer outputs than states");
  const size_t stacked = stage.outputs.size() - states;
  require_count(stage.input_axes.size(), scanned, "scan input axes");
  require_count(stage.input_reverse.size(), scanned, "scan input directions");
  require_count(stage.output_axes.size(), stacked, "scan output axes");
  require_count(stage.output_reverse.size(), stacked, "scan output directions");
  for (size_t k = 0; k < states; ++k) {
    body.input(k, stage.states[k]);
    body.output(k, stage.states[k]);
    body.output(k, stage.outputs[k]);
  }
  for (size_t k = 0; k < scanned; ++k) body.input(states + k, stage.scan_inputs[k], 1);
  for (size_t k = 0; k < stacked; ++k) body.output(states + k, stage.outputs[states + k], 1);
  for (size_t k = 0; k < stage.captures.size(); ++k)
    body.input(states + scanned + k, stage.captures[k]);
}

void verify_stage(const Program&, const SequenceOp& stage) {
  const Arity arity = arity_of(stage.kind, stage.inputs.size());
  require(stage.inputs.size() >= arity.least && stage.inputs.size() <= arity.most,
          "a sequence operation has the wrong number of inputs");
  require_count(stage.outputs.size(), 1, "outputs of a sequence operation");
  require_outputs(stage.outputs);
}

void verify_stage(const Program&, const Host& stage) {
  require(stage.callable != nullptr, "the host function '" + stage.function + "' is missing");
  require_outputs(stage.outputs);
}

}  // namespace rlx
