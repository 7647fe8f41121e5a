// Buffers of a growing past: filled, grown and continued.
#include "exec/state.h"

#include <algorithm>

#include "core/error.h"

namespace rlx {
namespace {

// A tensor seen as `outer` rows of `inner` bytes for each step along the axis.
struct Rows {
  Rows(DType dtype, const Dims& shape, size_t axis)
      : outer(size_t(element_count({shape.data(), axis}))),
        inner(size_t(element_count({shape.data() + axis + 1, shape.size() - axis - 1})) *
              size_of(dtype)) {}
  size_t outer, inner;
};

void copy_rows(const Device& device, const Rows& rows, int64_t length, const void* from,
               int64_t from_extent, void* to, int64_t to_extent) {
  const size_t bytes = rows.inner * size_t(length);
  if (bytes == 0) return;
  for (size_t r = 0; r < rows.outer; ++r) {
    device.copy(static_cast<char*>(to) + r * rows.inner * size_t(to_extent),
                static_cast<const char*>(from) + r * rows.inner * size_t(from_extent), bytes);
  }
}

// Whether the part puts all of its input, unchanged, at the beginning of the output.
bool copies_past(const MovePart& part, const Value& past, std::span<const Number> numbers) {
  for (size_t k = 0; k < past.shape.size(); ++k) {
    const auto is = [&](ExprId id, int64_t x) { return numbers[size_t(id)].i == x; };
    const bool axis_kept = part.perm[k] == int(k) && is(part.starts[k], 0) &&
                           is(part.steps[k], 1) && is(part.offsets[k], 0) &&
                           is(part.extents[k], numbers[size_t(past.shape[k])].i);
    if (!axis_kept) return false;
  }
  return true;
}

}  // namespace

std::optional<Prim> continue_state(const Facts& facts, const Node& node,
                                   std::span<const Number> numbers) {
  const auto state = [&](ValueId v) { return v < 0 ? -1 : facts.state_of[size_t(v)]; };
  const ValueId output = node.outputs.empty() ? -1 : node.outputs[0];
  if (state(output) < 0 || facts.input_at[size_t(output)] >= 0) return std::nullopt;
  const StatePair& pair = facts.program->states[size_t(state(output))];
  const ValueId past = facts.program->inputs[size_t(pair.input)];
  if (std::holds_alternative<Scatter>(node.prim) && node.inputs[0] == past) return node.prim;
  if (const auto* move = std::get_if<Move>(&node.prim)) {
    Move append = *move;
    const auto kept = std::erase_if(append.parts, [&](const MovePart& part) {
      return node.inputs[size_t(part.input)] == past &&
             copies_past(part, facts.value(past), numbers);
    });
    if (kept == 1) return append;
  }
  throw Error(ErrorKind::unsupported,
              "output '" + facts.value(output).name + "' does not append to its state");
}

State::State(const Facts& facts, const Device& device)
    : facts_(facts), device_(device), entries_(facts.program->states.size()) {
  if (entries_.empty()) throw Error(ErrorKind::input, "the model has no state to keep");
}

State::Use::Use(State& state) : state_(state) {
  if (state.busy_.exchange(true)) throw Error(ErrorKind::input, "another run uses this state");
}

const Value& State::input_value(size_t pair) const {
  const StatePair& p = facts_.program->states[pair];
  return facts_.value(facts_.program->inputs[size_t(p.input)]);
}

// Moves what the buffer holds to one with another extent.
void State::resize(size_t pair, const Dims& shape, int64_t extent, Counters& counters) {
  Entry& entry = entries_[pair];
  Dims full = shape;
  full[axis(pair)] = extent;
  const DType dtype = input_value(pair).dtype;
  std::shared_ptr<void> grown = device_.allocate(size_t(element_count(full)) * size_of(dtype));
  ++counters.dynamic_allocations;
  const int64_t length = entry.filled ? shape[axis(pair)] : 0;
  if (length > 0) {
    const Rows rows(dtype, shape, axis(pair));
    copy_rows(device_, rows, length, entry.memory.get(), entry.extent, grown.get(), extent);
    ++counters.state_growths;
  }
  entry.memory = std::move(grown);
  entry.extent = extent;
}

void State::fill(size_t pair, const Input& input, Counters& counters) {
  Entry& entry = entries_[pair];
  const Dims shape(input.shape);
  const Value& declared = input_value(pair);
  if (input.dtype != declared.dtype || shape.size() != declared.shape.size()) {
    throw Error(ErrorKind::input, "input '" + declared.name + "': wrong type for a state")
        .expected_got(std::string(name_of(declared.dtype)) + " of rank " +
                          std::to_string(declared.shape.size()),
                      name_of(input.dtype) + text_of(input.shape));
  }
  const int64_t length = shape[axis(pair)];
  entry.filled = false;
  resize(pair, shape, std::max<int64_t>(length, 1), counters);
  const Rows rows(input.dtype, shape, axis(pair));
  copy_rows(device_, rows, length, input.data, length, entry.memory.get(), entry.extent);
  entry.shape = shape;
  entry.filled = true;
}

// Dims that other inputs tell; nothing along the axis yet.
void State::start_empty(size_t pair, std::span<const Input> inputs, Counters& counters) {
  const Program& program = *facts_.program;
  std::vector<Number> symbols(program.symbols.size()), numbers(program.exprs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& given = facts_.value(program.inputs[i]);
    if (!inputs[i].given || given.kind != ValueKind::tensor) continue;
    for (size_t k = 0; k < std::min(given.shape.size(), inputs[i].shape.size()); ++k) {
      const ExprRow& dim = program.exprs[size_t(given.shape[k])];
      if (dim.op == ExprOp::symbol) symbols[size_t(dim.i)] = integer(inputs[i].shape[k]);
    }
  }
  evaluate(program.exprs, symbols, numbers);
  const Value& declared = input_value(pair);
  Dims shape;
  for (size_t k = 0; k < declared.shape.size(); ++k) {
    const Number& n = numbers[size_t(declared.shape[k])];
    if (k != axis(pair) && !n.known) {
      throw Error(ErrorKind::input, "input '" + declared.name + "': the size of dim " +
                                        std::to_string(k) +
                                        " is not known: give it a first value");
    }
    shape.push_back(k == axis(pair) ? 0 : n.i);
  }
  entries_[pair].filled = false;
  resize(pair, shape, 1, counters);
  entries_[pair].shape = shape;
  entries_[pair].filled = true;
}

std::vector<Input> State::complete(std::span<const Input> inputs, Counters& counters) {
  std::vector<Input> all(inputs.begin(), inputs.end());
  for (size_t i = 0; i < entries_.size(); ++i) {
    const size_t position = size_t(facts_.program->states[i].input);
    Entry& entry = entries_[i];
    if (inputs[position].given) {
      fill(i, inputs[position], counters);
    } else if (!entry.filled) {
      start_empty(i, inputs, counters);
    }
    all[position] = {input_value(i).dtype, entry.shape, entry.memory.get(), nullptr, true};
  }
  return all;
}

void State::reserve(std::span<const Number> planned, Counters& counters) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    const StatePair& pair = facts_.program->states[i];
    const Value& output = facts_.value(facts_.program->outputs[size_t(pair.output)]);
    const int64_t extent = planned[size_t(output.shape[axis(i)])].i;
    if (extent > entries_[i].extent) resize(i, entries_[i].shape, extent, counters);
  }
}

void State::commit(std::span<const Number> actual) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    const StatePair& pair = facts_.program->states[i];
    const Value& output = facts_.value(facts_.program->outputs[size_t(pair.output)]);
    entries_[i].shape[axis(i)] = actual[size_t(output.shape[axis(i)])].i;
  }
}

void State::clear() {
  for (Entry& entry : entries_) entry.filled = false;
}

std::vector<int64_t> State::extents() const {
  std::vector<int64_t> extents;
  for (const Entry& entry : entries_) extents.push_back(entry.extent);
  return extents;
}

Tensor State::copy(size_t pair) const {
  const Entry& entry = entries_[pair];
  if (!entry.filled) throw Error(ErrorKind::input, "the state is empty");
  Tensor tensor = make_tensor(input_value(pair).dtype, entry.shape);
  const Rows rows(tensor.dtype, entry.shape, axis(pair));
  copy_rows(device_, rows, entry.shape[axis(pair)], entry.memory.get(), entry.extent, tensor.data,
            entry.shape[axis(pair)]);
  return tensor;
}

}  // namespace rlx
