// From inputs to a Plan: checks, keys, symbols, and the bind of what was not seen before.
#include <algorithm>
#include <bit>
#include <chrono>

#include "exec/run.h"
#include "exec/state.h"

namespace rlx {
namespace {

alignas(64) const std::byte no_elements[64]{};

Error input_error(const Value& declared, const std::string& what) {
  return Error(ErrorKind::input, "input '" + declared.name + "': " + what);
}

std::string type_text(DType dtype, std::span<const int64_t> shape) {
  return name_of(dtype) + text_of(shape);
}

int64_t key_of(const Number& n, bool is_float) {
  return is_float ? std::bit_cast<int64_t>(n.f) : n.i;
}

}  // namespace

Number input_symbol(const Facts& facts, const Symbol& symbol, std::span<const Input> inputs) {
  const ValueId root = facts.root[size_t(symbol.value)];
  const int32_t position = facts.input_at[size_t(root)];
  if (position < 0) {  // of a constant
    return read_number(facts.value(root).dtype, facts.constant(root).data, symbol.index);
  }
  const Input& input = inputs[size_t(position)];
  if (symbol.kind == Symbol::Kind::dim) return integer(input.shape[size_t(symbol.index)]);
  if (symbol.index >= element_count(input.shape)) {
    throw input_error(facts.value(root), "element " + std::to_string(symbol.index) +
                                               " is needed")
        .expected_got("more than " + std::to_string(symbol.index) + " elements",
                      text_of(input.shape));
  }
  if (!input.data) throw input_error(facts.value(root), "its elements are needed");
  return read_number(input.dtype, input.data, symbol.index);
}

std::vector<Number> symbols_of_inputs(const Facts& facts, std::span<const Input> inputs) {
  std::vector<Number> symbols(facts.program->symbols.size());
  for (int32_t s : facts.input_symbols) {
    symbols[size_t(s)] = input_symbol(facts, facts.program->symbols[size_t(s)], inputs);
  }
  return symbols;
}

void Runner::bind_inputs(std::span<const Input> inputs) {
  if (inputs.size() != facts().program->inputs.size()) {
    throw Error(ErrorKind::internal, "wrong number of inputs");
  }
  context_.key.clear();
  context_.key.push_back(shared_.state != nullptr);
  for (size_t i = 0; i < inputs.size(); ++i) check_input(i, inputs[i]);
  std::vector<Tensor> copies;
  std::vector<Input> read;
  if (std::ranges::any_of(inputs, &Input::on_device)) {
    inputs = read = readable(facts(), inputs, copies);
  }
  if (facts().has_capacity) {
    plan_capacities(inputs);
  } else {
    for (int32_t s : facts().input_symbols) {
      const Symbol& symbol = facts().program->symbols[size_t(s)];
      if (symbol.kind == Symbol::Kind::element) {
        context_.key.push_back(key_of(input_symbol(facts(), symbol, inputs), symbol.is_float));
      }
    }
  }
  plan_ = first_plan(inputs);
}

std::vector<Input> Runner::readable(const Facts& facts, std::span<const Input> inputs,
                                    std::vector<Tensor>& copies) const {
  std::vector<Input> read(inputs.begin(), inputs.end());
  for (int32_t s : facts.input_symbols) {
    const Symbol& symbol = facts.program->symbols[size_t(s)];
    const int32_t at = facts.input_at[size_t(facts.root[size_t(symbol.value)])];
    if (symbol.kind != Symbol::Kind::element || at < 0) continue;
    Input& input = read[size_t(at)];
    if (!input.on_device) continue;
    copies.push_back(on_host({input.dtype, Dims(input.shape), const_cast<void*>(input.data),
                              nullptr, true}));
    input.data = copies.back().data;
    input.on_device = false;
  }
  return read;
}

// Dims go into the key; those that the program fixes are compared here.
void Runner::check_input(size_t i, const Input& input) {
  const ValueId v = facts().program->inputs[i];
  const Value& declared = facts().value(v);
  if (declared.kind != ValueKind::tensor) {
    const bool fits = input.value && (declared.kind == ValueKind::sequence
                                          ? std::holds_alternative<Sequence>(*input.value)
                                          : std::holds_alternative<Optional>(*input.value));
    if (!fits) throw input_error(declared, "expected a sequence or an optional");
    context_.values[size_t(v)] = *input.value;
    return;
  }
  const Dims& dims = facts().input_dims[i];
  if (input.value || input.dtype != declared.dtype) {
    throw input_error(declared, "wrong element type")
        .expected_got(name_of(declared.dtype),
                      input.value ? "a sequence or an optional" : name_of(input.dtype));
  }
  bool fits = input.shape.size() == dims.size();
  for (size_t k = 0; fits && k < dims.size(); ++k) fits = dims[k] < 0 || dims[k] == input.shape[k];
  if (!fits) {
    std::string expected;
    for (int64_t d : dims) {
      expected += (expected.empty() ? "" : ", ") + (d < 0 ? "?" : std::to_string(d));
    }
    throw input_error(declared, "wrong shape")
        .expected_got(std::string(name_of(declared.dtype)) + "[" + expected + "]",
                      type_text(input.dtype, input.shape));
  }
  if (!facts().has_capacity) {
    for (size_t k = 0; k < dims.size(); ++k) {
      if (dims[k] < 0) context_.key.push_back(input.shape[k]);
    }
  }
  // Steps take void* for all operands and do not write to inputs.
  context_.data[size_t(v)] = const_cast<void*>(input.data ? input.data : no_elements);
  context_.on_device[size_t(v)] = input.on_device;
  if (!context_.values.empty()) context_.values[size_t(v)] = Tensor{};
}

// An input's dims may be expressions: of other inputs' dims, or of one symbol used twice.
void Runner::check_dims(std::span<const Input> inputs, std::span<const Number> numbers) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& declared = facts().value(facts().program->inputs[i]);
    if (declared.kind != ValueKind::tensor) continue;
    for (size_t k = 0; k < declared.shape.size(); ++k) {
      const Number& n = numbers[size_t(declared.shape[k])];
      if (!n.known || n.i == inputs[i].shape[k]) continue;
      throw input_error(declared, "dim " + std::to_string(k) + " does not agree with other inputs")
          .expected_got(std::to_string(n.i), type_text(inputs[i].dtype, inputs[i].shape));
    }
  }
}

// Plans are made at the capacities; what the run needs are the actual numbers.
void Runner::plan_capacities(std::span<const Input> inputs) {
  const Program& program = *facts().program;
  context_.symbols = symbols_of_inputs(facts(), inputs);
  context_.numbers.clear();
  settle_numbers(facts(), context_.symbols, context_.numbers);
  // Guards first: a failed assumption (two dims of one name) is imported anew, not an error.
  check_guards(Guards::all, facts(), context_.symbols, context_.numbers, {});
  check_dims(inputs, context_.numbers);
  for (int32_t s : facts().input_symbols) {
    const Symbol& symbol = program.symbols[size_t(s)];
    const Number& actual = context_.symbols[size_t(s)];
    int64_t planned = key_of(actual, symbol.is_float);
    if (symbol.capacity >= 0) {
      planned = context_.numbers[size_t(symbol.capacity)].i;
      if (planned < actual.i) {
        throw Error(ErrorKind::input, "'" + symbol.name + "' is larger than its capacity")
            .expected_got("at most " + std::to_string(planned), std::to_string(actual.i));
      }
    }
    context_.key.push_back(planned);
  }
}

PlanPtr Runner::first_plan(std::span<const Input> inputs) {
  const PlanPtr& memo = context_.first_plan;
  if (memo && context_.key == context_.first_key && !memo->evicted) {
    unit_.plans->touch(*memo);
    return memo;
  }
  PlanPtr plan = unit_.plans->find(nullptr, context_.key);
  if (!plan) {
    sink_.long_work();
    std::vector<Number> symbols = symbols_of_inputs(facts(), inputs);
    if (facts().has_capacity) {
      size_t at = 1;
      for (int32_t s : facts().input_symbols) {
        if (facts().program->symbols[size_t(s)].capacity >= 0) {
          symbols[size_t(s)] = integer(context_.key[at]);
        }
        ++at;
      }
    } else {
      std::vector<Number> numbers;
      settle_numbers(facts(), symbols, numbers);
      check_guards(Guards::all, facts(), symbols, numbers, {});
      check_dims(inputs, numbers);
    }
    ++counters().plans;
    plan = bind(0, nullptr, context_.key, std::move(symbols));
  }
  context_.first_key = context_.key;
  return context_.first_plan = std::move(plan);
}

Number Runner::number_of(const Symbol& symbol) const {
  const Tensor source = resident(symbol.value);
  if (symbol.kind == Symbol::Kind::dim) return integer(source.shape[size_t(symbol.index)]);
  if (symbol.index >= element_count(source.shape)) {
    throw Error(ErrorKind::input, "value '" + facts().value(symbol.value).name + "': element " +
                                      std::to_string(symbol.index) + " is needed")
        .expected_got("more elements", text_of(source.shape));
  }
  if (!source.on_device) return read_number(source.dtype, source.data, symbol.index);
  alignas(16) std::byte element[16];
  const size_t size = size_of(source.dtype);
  const auto* from = static_cast<const std::byte*>(source.data) + size_t(symbol.index) * size;
  shared_.queue->copy(element, from, size);
  settle();
  return read_number(source.dtype, element, 0);
}

// The numbers that the stage just run has made known lead to the plan of the next.
PlanPtr Runner::next_plan() {
  const Program& program = *facts().program;
  const size_t stage = plan_->stage;
  std::vector<std::pair<int32_t, Number>> fresh;
  context_.key.clear();
  for (int32_t s : facts().stage_symbols[stage]) {
    const Symbol& symbol = program.symbols[size_t(s)];
    const Number n = number_of(symbol);
    fresh.push_back({s, n});
    context_.key.push_back(key_of(n, symbol.is_float));
    if (facts().has_capacity) context_.symbols[size_t(s)] = n;
  }
  if (facts().has_capacity) {
    const std::vector<Number> earlier = context_.numbers;
    settle_numbers(facts(), context_.symbols, context_.numbers);
    check_guards(Guards::all, facts(), context_.symbols, context_.numbers, earlier);
  }
  if (PlanPtr plan = unit_.plans->find(plan_.get(), context_.key)) return plan;
  sink_.long_work();
  std::vector<Number> symbols = plan_->symbols;
  for (const auto& [s, n] : fresh) symbols[size_t(s)] = n;
  return bind(stage + 1, plan_.get(), context_.key, std::move(symbols));
}

// What a stage made must have the dims that the program counts on, where it names them.
void Runner::check_made(size_t stage) const {
  if (facts().segment(stage)) return;
  for_each_written(facts().program->stages[stage], [&](ValueId v) {
    if (!facts().is_tensor(v)) return;
    const Value& declared = facts().value(v);
    const Dims& shape = std::get<Tensor>(context_.values[size_t(v)]).shape;
    for (size_t k = 0; k < shape.size(); ++k) {
      const Number& n = numbers()[size_t(declared.shape[k])];
      if (!n.known || n.i == shape[k]) continue;
      throw Error(ErrorKind::model, "value '" + declared.name + "': dim " + std::to_string(k) +
                                        " is not what the model implies")
          .expected_got(std::to_string(n.i), text_of(shape));
    }
  });
}

BindRequest Runner::bind_request() const {
  const Shared& shared = unit_.shared;
  return {.facts = facts(),
          .device = *shared.device,
          .packs = *shared.packs,
          .force = shared.options.force,
          .threads = shared_.threads,
          .check_memory = shared.options.check_memory,
          .with_state = shared_.state != nullptr};
}

PlanPtr Runner::bind(size_t stage, Plan* previous, const PlanKey& key,
                     std::vector<Number> symbols) {
  return unit_.plans->get(previous, key, [&] {
    const auto begin = std::chrono::steady_clock::now();
    PlanPtr plan = bind_stage(bind_request(), stage, previous, std::move(symbols));
    const std::chrono::nanoseconds all = std::chrono::steady_clock::now() - begin;
    const auto creation = int64_t(plan->creation_seconds * 1e9);
    const size_t most = unit_.shared.options.memory_limit, needed = base_ + plan->arena_bytes;
    if (needed > most) {
      throw Error(ErrorKind::memory_limit, "the run would need more memory than is allowed")
          .expected_got("at most " + std::to_string(most) + " bytes", std::to_string(needed));
    }
    ++counters().stage_binds;
    counters().creation_ns += creation;
    counters().bind_ns += all.count() - creation;
    return plan;
  });
}

}  // namespace rlx
