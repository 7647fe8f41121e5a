// Double buffers of loop-carried values.
#include "exec/carried.h"

#include "exec/hooks.h"

namespace rlx {

Carried::Carried(Runner& runner, std::span<const ValueId> initial,
                 std::span<const ValueId> outputs, size_t first_input)
    : runner_(runner), outputs_(outputs.first(initial.size())), fresh_(initial.size()),
      moved_(initial.size(), false), body_(runner.child_unit(0).facts),
      handed_(runner.child_context(0).handed), first_input_(first_input) {
  for (ValueId v : initial) current_.push_back(runner.resident_value(v));
  const size_t count = body_.program->outputs.size();
  for (int set : {0, 1}) handed_[set].resize(count);
}

void* Carried::next(size_t c, DType dtype, std::span<const int64_t> shape, bool on_device) {
  Tensor tensor{dtype, Dims(shape), nullptr, nullptr, on_device};
  tensor.data = handed_[set_][c].reserve(tensor.bytes(), runner_.counters(), 0,
                                         on_device ? runner_.queue() : nullptr);
  fresh_[c] = tensor;
  return tensor.data;
}

// What gives the body numbers is read by the host in each iteration.
bool Carried::on_device(size_t c, bool made_there) const {
  return made_there && !body_.has_numbers[first_input_ + c];
}

void Carried::advance() {
  for (size_t c = 0; c < current_.size(); ++c) {
    if (!fresh_[c]) continue;
    current_[c] = std::move(*fresh_[c]);
    fresh_[c].reset();
    moved_[c] = true;
  }
  set_ = 1 - set_;
}

void Carried::finish() {
  for (size_t c = 0; c < current_.size(); ++c) {
    if (outputs_[c] < 0) continue;
    const auto* tensor = std::get_if<Tensor>(&current_[c]);
    if (tensor && !moved_[c]) {
      // The initial value's memory may serve others after this stage.
      runner_.check_type(outputs_[c], tensor->dtype, tensor->shape.size());
      runner_.copy(runner_.result(outputs_[c], tensor->shape, tensor->on_device), *tensor);
    } else {
      runner_.define(outputs_[c], current_[c]);
    }
  }
}

std::vector<RunValue> captured(Runner& runner, std::span<const ValueId> captures,
                               size_t first_input) {
  const Facts& body = runner.child_unit(0).facts;
  std::vector<Buffer>& copies = runner.child_context(0).given;
  copies.resize(body.program->inputs.size());
  std::vector<RunValue> values;
  for (size_t k = 0; k < captures.size(); ++k) {
    values.push_back(runner.resident_value(captures[k]));
    const size_t input = first_input + k;
    auto* tensor = std::get_if<Tensor>(&values.back());
    const bool moves = runner.queue() && tensor && !tensor->on_device && tensor->bytes() > 0 &&
                       body.for_nodes[input] && !body.has_numbers[input];
    if (!moves) continue;
    void* copy = copies[input].reserve(tensor->bytes(), runner.counters(), 0, runner.queue());
    runner.upload(copy, *tensor);
    *tensor = {tensor->dtype, tensor->shape, copy, nullptr, true};
  }
  return values;
}

void Interruptible::check() {
  const auto now = Clock::now();
  if (now - last_ < interval_) return;
  last_ = now;
  if (hooks().check_interrupt) hooks().check_interrupt();
}

Dims shape_without_running(const Unit& body, size_t output, std::span<const Input> inputs) {
  const Facts& facts = body.facts;
  std::vector<Number> numbers;
  settle_numbers(facts, symbols_of_inputs(facts, inputs), numbers);
  Dims shape;
  for (ExprId dim : facts.value(facts.program->outputs[output]).shape) {
    shape.push_back(numbers[size_t(dim)].known ? std::max<int64_t>(numbers[size_t(dim)].i, 0) : 0);
  }
  return shape;
}

}  // namespace rlx
