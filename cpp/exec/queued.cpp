// Segments on a device with memory of its own: values of the host get places there, and a walk
// that comes again at the same addresses is recorded and from then on replayed.
#include <algorithm>

#include "exec/run.h"
#include "plan/lane_queue.h"

namespace rlx {
namespace {

// Callers that alternate between a few sets of device arrays still find their recording.
constexpr size_t kept_walks = 8;

}  // namespace

Tensor Runner::on_host(Tensor tensor) const {
  if (!tensor.on_device) return tensor;
  Tensor copy = make_tensor(tensor.dtype, tensor.shape);
  if (const size_t bytes = copy.bytes()) {
    shared_.queue->copy(copy.data, tensor.data, bytes);
    settle();
  }
  return copy;
}

const char* Runner::title_of(const Node& node) const {
  return node.origin < 0 ? name_of(node.prim)
                         : facts().program->origins[size_t(node.origin)].name.c_str();
}

void Runner::run_queued(PlanState& state) {
  sink_.long_work();  // others may upload and launch while this run waits for the device
  Queue& queue = *shared_.queue;
  const bool spread = unit_.shared.options.lanes > 1 && dynamic_cast<LaneQueue*>(&queue);
  if (spread && state.lanes.empty()) state.spread(size_t(unit_.shared.options.lanes));
  const bool from_host = stage_values(state);
  for (size_t k = 0; k < state.outside.size(); ++k) {
    state.operands[state.outside[k]] = state.staged[state.staged_at[k]].address;
  }
  play(state);
  bool to_host = false;
  for (const Staged& value : state.staged) {
    if (!value.written || context_.on_device[size_t(value.root)]) continue;
    const Dims shape = dims_of(facts().value(value.root), {numbers(), numbers()});
    const size_t bytes = size_t(element_count(shape)) * size_of(facts().value(value.root).dtype);
    if (bytes == 0) continue;
    queue.copy(context_.data[size_t(value.root)], value.address, bytes);
    to_host = true;
  }
  shared_.uploaded |= from_host;
  if (to_host) settle();
}

void Runner::place(std::span<RunValue> values, size_t first) {
  if (!shared_.queue) return;
  sink_.long_work();
  const Facts& child = child_unit(0).facts;
  std::vector<Buffer>& copies = child_context(0).given;
  copies.resize(child.program->inputs.size());
  for (size_t i = first; i < first + values.size(); ++i) {
    auto* tensor = std::get_if<Tensor>(&values[i - first]);
    const auto input = size_t(child.root[size_t(child.program->inputs[i])]);
    const size_t bytes = tensor ? tensor->bytes() : 0;
    if (bytes == 0) continue;
    if (child.for_host[input] == child.for_nodes[input]) continue;
    if (child.for_host[input]) {
      *tensor = on_host(std::move(*tensor));
    } else if (!tensor->on_device) {
      void* copy = reserve(copies[i], bytes, true);
      shared_.queue->copy(copy, tensor->data, bytes);
      shared_.uploaded = true;
      *tensor = {tensor->dtype, tensor->shape, copy, nullptr, true};
    }
  }
}

void Runner::settle() const {
  shared_.queue->synchronize();
  shared_.uploaded = false;
}

// Gives each value outside the arena its address on the device; copies those that are read and
// lie on the host, and says whether there were any.
bool Runner::stage_values(PlanState& state) {
  bool copied = false;
  for (Staged& value : state.staged) {
    const size_t root = size_t(value.root);
    value.address = context_.data[root];
    // Steps count on the arena's alignment, which a slice of a caller's array may lack.
    const bool aligned = reinterpret_cast<uintptr_t>(value.address) % plan::alignment == 0;
    if (context_.on_device[root] && (aligned || value.written)) continue;
    const Dims shape = dims_of(facts().value(value.root), {numbers(), numbers()});
    const size_t bytes = size_t(element_count(shape)) * size_of(facts().value(value.root).dtype);
    if (!value.memory || bytes > value.capacity) {
      value.memory = shared_.queue->allocate(bytes);
      value.capacity = bytes;
      ++counters().dynamic_allocations;
    }
    value.address = value.memory.get();
    if (value.written || bytes == 0) continue;
    shared_.queue->copy(value.address, context_.data[root], bytes);
    copied = copied || !context_.on_device[root];
  }
  return copied;
}

void PlanState::spread(size_t lane_count) {
  std::vector<plan::Touch> touched;
  for (const PlannedNode& node : plan->nodes) {
    plan::Touch& touch = touched.emplace_back();
    if (node.view) continue;
    const size_t inputs = node.node->inputs.size(), all = inputs + node.node->outputs.size();
    for (size_t i = 0; i < all; ++i) {
      const Operand& operand = plan->operands[node.first_operand + i];
      plan::Range range{-1, operand.offset, operand.offset + operand.bytes};
      if (operand.place == Operand::Place::outside) range = {operand.root, 0, 1};
      else if (operand.place != Operand::Place::arena) continue;
      (i < inputs ? touch.reads : touch.writes).push_back(range);
    }
    const size_t workspace = node.workspace_offset;
    touch.writes.push_back({-1, workspace, workspace + node.selection.workspace});
    // The counter of random numbers is one for all.
    if (std::holds_alternative<Random>(node.node->prim)) touch.writes.push_back({-2, 0, 1});
  }
  lanes = plan::assign_lanes(touched, lane_count);
}

void Runner::run_on_lanes(PlanState& state) {
  auto& queue = static_cast<LaneQueue&>(*shared_.queue);
  queue.begin_lanes(size_t(unit_.shared.options.lanes));
  for (size_t t = 0; t < plan_->nodes.size(); ++t) {
    const plan::LaneStep& step = state.lanes[t];
    for (uint32_t other : step.waits) queue.wait(step.lane, other);
    run_node(state, t, queue.lane(step.lane));
    if (step.signals) queue.signal(step.lane, t);
  }
  queue.end_lanes();
}

// The first walk at some addresses loads kernels and warms libraries, the second is recorded.
void Runner::play(PlanState& state) {
  const bool plain = !unit_.shared.options.record || !state.recordable || shared_.observer;
  if (plain) return run_nodes(state);
  std::vector<void*> addresses = {state.base};
  for (const Staged& value : state.staged) addresses.push_back(value.address);
  auto& walks = state.walks;
  const auto found = std::ranges::find(walks, addresses, &RecordedWalk::addresses);
  if (found == walks.end()) {
    run_nodes(state);
    if (walks.size() == kept_walks) walks.pop_back();
    walks.insert(walks.begin(), {std::move(addresses), nullptr});
    return;
  }
  std::rotate(walks.begin(), found, found + 1);
  RecordedWalk& walk = walks.front();
  if (!walk.recording) walk.recording = record(state);
  if (!walk.recording) return run_nodes(state);
  walk.recording->replay();
}

// Null, for good, when a step does something that cannot be recorded.
std::unique_ptr<Recording> Runner::record(PlanState& state) {
  Queue& queue = *shared_.queue;
  queue.begin_recording();
  try {
    run_nodes(state);
    std::unique_ptr<Recording> made = queue.end_recording();
    ++counters().recordings;
    return made;
  } catch (const Error& error) {
    queue.abandon_recording();
    if (error.kind != ErrorKind::device) throw;
    state.recordable = false;
    return nullptr;
  } catch (...) {
    queue.abandon_recording();
    throw;
  }
}

}  // namespace rlx
