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
  tensor.data = runner_.reserve(handed_[set_][c], tensor.bytes(), on_device);
  fresh_[c] = tensor;
  return tensor.data;
}

bool Carried::wants_on_device(size_t c, bool made_there) const {
  const ValueId input = body_.program->inputs[first_input_ + c];
  return made_there && !body_.for_host[size_t(body_.root[size_t(input)])];
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

void Interruptible::check() {
  const auto now = Clock::now();
  if (now - last_ < interval_) return;
  last_ = now;
  if (hooks().check_interrupt) hooks().check_interrupt();
}

Dims shape_without_running(const Runner& runner, size_t output, std::span<const Input> inputs) {
  const Facts& facts = runner.child_unit(0).facts;
  std::vector<Tensor> copies;
  std::vector<Number> numbers;
  settle_numbers(facts, symbols_of_inputs(facts, runner.readable(facts, inputs, copies)), numbers);
  Dims shape;
  for (ExprId dim : facts.value(facts.program->outputs[output]).shape) {
    shape.push_back(numbers[size_t(dim)].known ? std::max<int64_t>(numbers[size_t(dim)].i, 0) : 0);
  }
  return shape;
}

}  // namespace rlx
