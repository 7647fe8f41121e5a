// Walks the stages of a program and runs the nodes of its segments.
#include "exec/run.h"

#include <algorithm>
#include <cstring>

#include "exec/canary.h"
#include "exec/carried.h"
#include "exec/observer.h"
#include "exec/stages.h"
#include "exec/state.h"
#include "exec/views.h"

namespace rlx {
namespace {

// Below this many bytes read and written, letting go of the GIL costs more than it gives.
constexpr size_t small_traffic = size_t{128} << 10;

// How often a long segment asks for the user's interrupt, which may wait for other threads' Python.
constexpr std::chrono::milliseconds between_nodes{500};

// Steps tell an absent operand from an empty one by the pointer.
alignas(plan::alignment) std::byte no_elements[plan::alignment];

}  // namespace

Runner::Runner(Unit& unit, Context& context, RunShared& shared, size_t base, OutputSink& sink)
    : unit_(unit), context_(context), shared_(shared), base_(base), sink_(sink) {}

void Runner::run(std::span<const Input> inputs) {
  State* state = shared_.state;
  std::vector<Input> completed;
  if (state) inputs = completed = state->complete(inputs, counters());
  bind_inputs(inputs);
  if (state) enter_state(*state);
  const auto& stages = facts().program->stages;
  for (size_t s = 0; s < stages.size(); ++s) {
    if (s > 0) {
      plan_ = next_plan();
      check_made(s - 1);
    }
    if (shared_.observer) shared_.observer->begin_stage(unit_, plan_);
    run_stage(stages[s]);
    if (shared_.observer) shared_.observer->end_stage();
  }
  if (!stages.empty() && !facts().stage_symbols.back().empty()) plan_ = next_plan();
  copy_outputs();
}

void Runner::finish() {
  if (shared_.queue && (shared_.uploaded || shared_.state)) settle();
  if (shared_.state) shared_.state->commit(numbers());
}

// Input and output of each pair are one buffer.
void Runner::enter_state(State& state) {
  const Program& program = *facts().program;
  state.reserve(plan_->numbers, counters());
  for (size_t i = 0; i < program.states.size(); ++i) {
    const StatePair& pair = program.states[i];
    for (ValueId v : {program.inputs[size_t(pair.input)], program.outputs[size_t(pair.output)]}) {
      context_.data[size_t(v)] = state.data(i);
      context_.on_device[size_t(v)] = shared_.queue != nullptr;
    }
  }
}

void Runner::run_stage(const Stage& stage) {
  struct Dispatch {
    Runner& runner;
    void operator()(const Segment&) const { runner.run_segment(); }
    void operator()(const If& s) const { run_if(runner, s); }
    void operator()(const Loop& s) const { run_loop(runner, s); }
    void operator()(const Scan& s) const { run_scan(runner, s); }
    void operator()(const SequenceOp& s) const { run_sequence_op(runner, s); }
    void operator()(const Host& s) const { run_host(runner, s); }
  };
  try {
    std::visit(Dispatch{*this}, stage);
  } catch (Error& error) {
    const int32_t origin = std::visit([](const auto& s) {
      if constexpr (requires { s.origin; }) return s.origin;
      else return int32_t{-1};
    }, stage);
    name_origin(error, *facts().program, origin);
    throw;
  }
}

void Runner::run_segment() {
  const Plan& plan = *plan_;
  const size_t end = base_ + plan.arena_bytes;
  if (end > shared_.arena.size()) shared_.arena.grow(end);
  counters().highest(counters().arena_bytes, int64_t(end));
  PlanState& state = context_.state_of(plan_, shared_.arena.base() + base_);
  for (const DirectOutput& direct : plan.direct) {
    const Value& value = facts().value(facts().program->outputs[direct.output]);
    const Dims shape = facts().has_capacity ? dims_of(value, {numbers(), numbers()}) : Dims();
    const bool on_device = sink_.wants_on_device(direct.output, shared_.queue != nullptr);
    if (on_device) sink_.long_work();  // the pool may have to wait for the GPU
    void* memory = sink_.tensor(direct.output, value.dtype,
                                facts().has_capacity ? shape : direct.shape, on_device);
    context_.data[size_t(direct.root)] = memory ? memory : no_elements;
    context_.on_device[size_t(direct.root)] = on_device;
  }
  if (facts().has_capacity) reselect(state);
  if (shared_.queue) return run_queued(state);
  for (uint32_t i : state.outside) {
    state.operands[i] = context_.data[size_t(plan.operands[i].root)];
  }
  if (plan.traffic > small_traffic) sink_.long_work();
  run_nodes(state);
}

void Runner::run_nodes(PlanState& state) {
  if (!state.lanes.empty() && !shared_.observer) return run_on_lanes(state);
  const bool check = unit_.shared.options.check_memory && unit_.shared.device->arena_is_visible();
  const MemoryCheck memory(*plan_, state.base);
  std::optional<Interruptible> user;
  if (!shared_.queue && plan_->traffic > small_traffic) user.emplace(between_nodes);
  for (size_t t = 0; t < plan_->nodes.size(); ++t) {
    if (user) user->check();
    if (check) memory.before(t);
    run_node(state, t, shared_.queue ? shared_.queue->stream() : nullptr);
    if (check) memory.after(t);
  }
}

void Runner::run_node(PlanState& state, size_t t, void* stream) {
  Queue* const queue = shared_.queue;
  Observer* const observer = shared_.observer;
  const PlannedNode& node = plan_->nodes[t];
  NodeState& own = state.nodes[t];
  const Selection& selection = own.selection ? *own.selection : node.selection;
  RunArgs args{.operands = state.operands.data() + node.first_operand,
               .workspace = own.workspace ? own.workspace.get()
                                          : state.base + node.workspace_offset,
               .state = nullptr,
               .threads = plan_->threads,
               .stream = stream,
               .random = queue ? queue->random() : shared_.random};
  try {
    if (queue) queue->name_node(title_of(*node.node));
    for (size_t s = 0; s < selection.steps.size(); ++s) {
      args.state = own.states[s].get();
      if (observer) observer->begin_step();
      if (observer && queue) queue->begin_timing();
      selection.steps[s].body->run(args);
      if (queue && unit_.shared.options.stepwise) queue->synchronize();
      if (observer) observer->end_step(t, s, queue ? queue->end_timing() : -1);
    }
    if (queue) queue->name_node(nullptr);
    if (observer) show_node(*observer, t, args.operands);
  } catch (Error& error) {
    name_origin(error, *facts().program, node.node->origin);
    throw;
  }
}

void Runner::show_node(Observer& observer, size_t t, void* const* operands) {
  const std::optional<View>& view = plan_->nodes[t].view;
  if (!shared_.queue && !view) return observer.end_node(t, operands);
  const Node& node = *plan_->nodes[t].node;
  const std::vector<Number> bounds = bounds_of(facts(), plan_->symbols, plan_->numbers);
  std::vector<TensorDesc> descs;
  describe_node(facts(), node, {plan_->numbers, bounds}, {}, descs);
  std::vector<Tensor> copies;
  std::vector<void*> addresses(descs.size(), nullptr);
  for (size_t i = node.inputs.size(); i < descs.size(); ++i) {
    if (descs[i].dtype == DType::none || !operands[i]) continue;
    const bool on_device = shared_.queue != nullptr;
    const auto at = [&](Dims shape) {
      return on_host({descs[i].dtype, std::move(shape), operands[i], nullptr, on_device});
    };
    copies.push_back(view ? gathered(at({reach(descs[i].shape, view->strides)}), descs[i].shape,
                                     view->strides)
                          : at(descs[i].shape));
    addresses[i] = copies.back().data;
  }
  observer.end_node(t, addresses.data());
}

// Within a capacity the plan stays: only the nodes whose sizes changed get other steps.
void Runner::reselect(PlanState& state) {
  std::vector<int64_t> actual;
  for (size_t s = 0; s < context_.symbols.size(); ++s) {
    if (facts().program->symbols[s].capacity >= 0) actual.push_back(context_.symbols[s].i);
  }
  std::vector<int64_t> extents;
  if (shared_.state) extents = shared_.state->extents();
  actual.insert(actual.end(), extents.begin(), extents.end());
  if (actual == state.actual) return;
  state.actual.clear();  // if a selection throws, the next run starts over
  const std::vector<Number> bounds = bounds_of(facts(), context_.symbols, context_.numbers);
  const BindRequest request = bind_request();
  std::vector<TensorDesc> descs;
  for (size_t t = 0; t < state.nodes.size(); ++t) {
    const PlannedNode& node = plan_->nodes[t];
    if (!node.varying) continue;
    NodeState& own = state.nodes[t];
    describe_node(facts(), *node.node, {context_.numbers, bounds}, extents, descs);
    own.selection = std::make_unique<Selection>(
        select_node(request, *node.node, descs, context_.numbers));
    own.states.clear();
    for (const SelectedStep& step : own.selection->steps) {
      own.states.push_back(step.body->make_state());
    }
    const size_t planned = node.selection.workspace, needed = own.selection->workspace;
    own.workspace = nullptr;
    if (needed > planned) {
      own.workspace = shared_.queue ? shared_.queue->allocate(needed)
                                    : unit_.shared.device->allocate(needed);
      ++counters().dynamic_allocations;
    }
    ++counters().reselections;
  }
  state.walks.clear();
  state.actual = std::move(actual);
}

void Runner::copy_outputs() {
  const Program& program = *facts().program;
  bool fetched = false;
  for (size_t j = 0; j < program.outputs.size(); ++j) {
    const bool late = std::ranges::count(late_, int32_t(j)) > 0;
    if (!(facts().copied[j] || late) || !sink_.wanted(j)) continue;
    const ValueId v = program.outputs[j];
    if (!facts().is_tensor(v)) {
      sink_.value(j, value(v));
      continue;
    }
    const Tensor source = resident(v);
    const bool on_device = sink_.wants_on_device(j, source.on_device);
    if (on_device) sink_.long_work();
    void* memory = sink_.tensor(j, source.dtype, source.shape, on_device);
    if (source.on_device == on_device) {
      copy(memory, source);
    } else if (const size_t bytes = source.bytes()) {
      shared_.queue->copy(memory, source.data, bytes);
      fetched = fetched || !on_device;
    }
  }
  if (fetched) settle();
}

std::span<const Number> Runner::numbers() const {
  if (facts().has_capacity) return context_.numbers;
  return plan_->numbers;
}

Tensor Runner::tensor(ValueId v) const { return on_host(resident(v)); }

Tensor Runner::resident(ValueId v) const {
  const ValueId root = facts().root[size_t(v)];
  const Value& declared = facts().value(v);
  Tensor tensor{declared.dtype, {}, nullptr, nullptr};
  const Tensor* made = context_.values.empty()
                           ? nullptr
                           : std::get_if<Tensor>(&context_.values[size_t(root)]);
  if (v == root && made && made->dtype != DType::none) {
    tensor.shape = made->shape;
    tensor.owner = made->owner;
  } else {
    tensor.shape = dims_of(declared, {numbers(), numbers()});
  }
  if (facts().is_constant(v)) {
    tensor.data = const_cast<void*>(facts().constant(v).data);
    return tensor;
  }
  tensor.data = context_.data[size_t(root)];
  tensor.on_device = context_.on_device[size_t(root)];
  for (const Kept& k : plan_->kept) {
    if (k.root != root) continue;
    tensor.data = shared_.arena.base() + base_ + k.offset;
    tensor.on_device = shared_.queue != nullptr;
  }
  return tensor;
}

RunValue Runner::resident_value(ValueId v) const {
  if (facts().is_tensor(v)) return resident(v);
  return context_.values[size_t(facts().root[size_t(v)])];
}

RunValue Runner::value(ValueId v) const {
  if (facts().is_tensor(v)) return tensor(v);
  return context_.values[size_t(facts().root[size_t(v)])];
}

Input Runner::as_input(const RunValue& value) const {
  if (const auto* t = std::get_if<Tensor>(&value)) {
    return {t->dtype, t->shape, t->data, nullptr, true, t->on_device};
  }
  Input container;
  container.value = &value;
  return container;
}

void Runner::copy(void* to, const Tensor& tensor) {
  const size_t bytes = tensor.bytes();
  if (bytes && tensor.on_device) shared_.queue->copy(to, tensor.data, bytes);
  else if (bytes) std::memcpy(to, tensor.data, bytes);
}

void* Runner::result(ValueId v, const Dims& shape, bool on_device) {
  const DType dtype = facts().value(v).dtype;
  Tensor tensor{dtype, shape, nullptr, nullptr};
  const int32_t output = facts().direct_output[size_t(v)];
  const bool direct = belongs(output, on_device);
  // What belongs on the other side follows at the end.
  if (output >= 0 && !direct) late_.push_back(output);
  if (on_device) sink_.long_work();  // the pool may have to wait for the GPU
  tensor.data = direct ? sink_.tensor(size_t(output), dtype, shape, on_device)
                       : reserve(buffer(v), tensor.bytes(), on_device);
  if (!tensor.data) tensor.data = no_elements;
  tensor.on_device = on_device;
  context_.data[size_t(v)] = tensor.data;
  context_.on_device[size_t(v)] = on_device;
  context_.values[size_t(v)] = tensor;
  return tensor.data;
}

void Runner::define(ValueId v, RunValue value) {
  if (auto* tensor = std::get_if<Tensor>(&value)) {
    check_type(v, tensor->dtype, tensor->shape.size());
    if (facts().for_host[size_t(v)]) *tensor = on_host(std::move(*tensor));
    const int32_t output = facts().direct_output[size_t(v)];
    if (belongs(output, tensor->on_device)) {
      return copy(result(v, tensor->shape, tensor->on_device), *tensor);
    }
    if (output >= 0) late_.push_back(output);
    context_.data[size_t(v)] = tensor->data ? tensor->data : no_elements;
    context_.on_device[size_t(v)] = tensor->on_device;
  }
  context_.values[size_t(v)] = std::move(value);
}

void Runner::check_type(ValueId v, DType dtype, size_t rank) const {
  const Value& declared = facts().value(v);
  if (dtype == declared.dtype && rank == declared.shape.size()) return;
  const auto text = [](DType t, size_t r) {
    return std::string(name_of(t)) + " of rank " + std::to_string(r);
  };
  throw Error(ErrorKind::model, "value '" + declared.name + "' has another type than declared")
      .expected_got(text(declared.dtype, declared.shape.size()), text(dtype, rank));
}

const Unit& Runner::child_unit(size_t n) const {
  return *unit_.children[size_t(facts().first_child[plan_->stage]) + n];
}

Context& Runner::child_context(size_t n) {
  return context_.child(size_t(facts().first_child[plan_->stage]) + n, child_unit(n).facts);
}

void Runner::run_child(size_t n, std::span<const Input> inputs, OutputSink& sink) {
  Unit& unit = *unit_.children[size_t(facts().first_child[plan_->stage]) + n];
  RunShared shared = shared_;
  shared.state = nullptr;
  ++counters().child_runs;
  Runner(unit, child_context(n), shared, base_ + plan_->kept_end, sink).run(inputs);
  shared_.uploaded = shared.uploaded;
}

}  // namespace rlx
