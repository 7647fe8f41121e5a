// Numbers, guards and the selection of steps; the layout of memory is bind_segment's.
#include "exec/bind.h"

#include <algorithm>

#include "exec/segment.h"
#include "exec/state.h"

namespace rlx {
namespace {

bool all_empty(std::span<const TensorDesc> outputs) {
  return std::all_of(outputs.begin(), outputs.end(), [](const TensorDesc& d) {
    return d.dtype == DType::none || d.count() == 0;
  });
}

}  // namespace

void name_origin(Error& error, const Program& program, int32_t origin) {
  if (origin < 0) return;
  const Origin& o = program.origins[size_t(origin)];
  error.at(o.name, o.op);
}

void settle_numbers(const Facts& facts, std::span<const Number> symbols,
                    std::vector<Number>& numbers) {
  numbers.resize(facts.program->exprs.size());
  evaluate(facts.program->exprs, symbols, numbers);
}

void check_guards(Guards which, const Facts& facts, std::span<const Number> symbols,
                  std::span<const Number> numbers, std::span<const Number> before) {
  const Program& program = *facts.program;
  for (const Guard& guard : program.guards) {
    const size_t id = size_t(guard.condition);
    if (which == Guards::not_varying && facts.varying[id]) continue;
    if (!numbers[id].known || (!before.empty() && before[id].known)) continue;
    if (numbers[id].i != 0 || numbers[id].f != 0.0) continue;
    if (!guard.assumption.empty()) throw Respecialise(guard.assumption);
    const std::string values = symbols_under(program, guard.condition, symbols);
    Error error(ErrorKind::input, guard.message + (values.empty() ? "" : " (" + values + ")"));
    name_origin(error, program, guard.origin);
    throw error;
  }
}

std::vector<Number> bounds_of(const Facts& facts, std::span<const Number> symbols,
                              std::span<const Number> numbers) {
  const Program& program = *facts.program;
  std::vector<Number> bounded(symbols.begin(), symbols.end());
  for (size_t s = 0; s < bounded.size(); ++s) {
    const ExprId upper = program.symbols[s].upper;
    if (!bounded[s].known && upper >= 0) bounded[s] = numbers[size_t(upper)];
  }
  std::vector<Number> bounds(numbers.begin(), numbers.end());
  evaluate(program.exprs, bounded, bounds);
  return bounds;
}

void describe_node(const Facts& facts, const Node& node, Numbers numbers,
                   std::span<const int64_t> state_extents, std::vector<TensorDesc>& descs) {
  descs.clear();
  const auto add = [&](ValueId v) {
    TensorDesc& desc = descs.emplace_back();
    if (v < 0) return;
    const Value& value = facts.value(v);
    desc.dtype = value.dtype;
    desc.shape = dims_of(value, numbers);
    desc.strides = row_major(desc.shape);
    if (facts.is_constant(v)) desc.constant = &facts.constant(v);
    const int32_t state = facts.state_of[size_t(facts.root[size_t(v)])];
    if (state < 0 || state_extents.empty()) return;
    Dims buffer = desc.shape;
    buffer[size_t(facts.program->states[size_t(state)].axis)] = state_extents[size_t(state)];
    desc.strides = row_major(buffer);
  };
  try {
    for (ValueId v : node.inputs) add(v);
    for (ValueId v : node.outputs) add(v);
  } catch (Error& error) {
    name_origin(error, *facts.program, node.origin);
    throw;
  }
}

Selection select_node(const BindRequest& request, const Node& node,
                      std::span<const TensorDesc> descs, std::span<const Number> numbers) {
  const auto inputs = descs.first(node.inputs.size()), outputs = descs.subspan(inputs.size());
  if (all_empty(outputs)) {
    Selection nothing;
    nothing.reason = "its outputs are empty";
    return nothing;
  }
  const Facts& facts = request.facts;
  try {
    std::optional<Prim> continued;
    if (request.with_state) continued = continue_state(facts, node, numbers);
    return request.device.select({.prim = continued ? *continued : node.prim,
                                  .inputs = inputs,
                                  .outputs = outputs,
                                  .numbers = numbers,
                                  .threads = request.threads,
                                  .force = request.force,
                                  .packs = request.packs});
  } catch (Error& error) {
    name_origin(error, *facts.program, node.origin);
    throw;
  }
}

PlanPtr bind_stage(const BindRequest& request, size_t stage, const Plan* previous,
                   std::vector<Number> symbols) {
  const Facts& facts = request.facts;
  auto plan = std::make_shared<Plan>();
  plan->stage = stage;
  plan->threads = request.threads;
  plan->with_state = request.with_state;
  plan->symbols = std::move(symbols);
  if (previous) plan->numbers = previous->numbers;
  settle_numbers(facts, plan->symbols, plan->numbers);
  check_guards(Guards::not_varying, facts, plan->symbols, plan->numbers,
               previous ? std::span<const Number>(previous->numbers) : std::span<const Number>());
  std::vector<Kept> kept;
  if (previous) {
    std::ranges::copy_if(previous->kept, std::back_inserter(kept), [&](const Kept& k) {
      return facts.last_read_in[size_t(k.root)] >= int32_t(stage);
    });
  }
  const Segment* segment =
      stage < facts.program->stages.size() ? facts.segment(stage) : nullptr;
  if (segment) {
    bind_segment(request, *segment, kept, *plan);
  } else {
    plan->kept = std::move(kept);
  }
  for (const Kept& k : plan->kept) {
    plan->kept_end = std::max(plan->kept_end, plan::aligned(k.offset + k.bytes));
  }
  plan->footprint = sizeof(Plan) + (plan->numbers.size() + plan->symbols.size()) * sizeof(Number);
  for (const PlannedNode& node : plan->nodes) {
    plan->footprint += sizeof(PlannedNode) + 256;
    // A library primitive holds generated code.
    for (const SelectedStep& step : node.selection.steps) {
      plan->footprint += step.kind == StepKind::launch ? 1024 : 32768;
    }
  }
  return plan;
}

}  // namespace rlx
