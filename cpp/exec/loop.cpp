// Loop: carried values in two buffers, scan outputs in buffers that grow geometrically.
#include "exec/carried.h"
#include "exec/stages.h"

namespace rlx {
namespace {

// Slices of one scan output, one behind the other. What nodes write on a device has one address in
// all iterations, so that they can be replayed, and is copied behind the others.
struct Stack {
  Tensor slice;  // the latest; `data` where it has not been put behind the others
  int64_t count = 0;
};

class LoopRun final : public OutputSink {
 public:
  LoopRun(Runner& runner, const Loop& stage)
      : runner_(runner), stage_(stage), body_(*stage.body),
        carried_(runner, stage.carried, stage.outputs, 2), stacks_(size_t(stage.scans)) {
    for (ValueId v : stage.captures) captures_.push_back(runner.resident_value(v));
  }

  void run() {
    int64_t trips = INT64_MAX;
    if (stage_.trip_count >= 0) trips = trip_count();
    if (stage_.trip_count >= 0 && hands_on_condition()) known_ = trips;
    if (stage_.condition >= 0) {
      go_ = truth_of(runner_.tensor(stage_.condition), "a Loop's condition");
    }
    if (trips > 0 && go_) {
      carried_.place();
      runner_.place(captures_, body_.inputs.size() - captures_.size());
    }
    Interruptible user;
    for (iteration_ = 0; iteration_ < trips && go_; ++iteration_) {
      user.check();
      set_inputs();
      runner_.run_child(0, inputs_, *this);
      carried_.advance();
      for (size_t k = 0; k < stacks_.size(); ++k) {
        const Tensor& slice = stacks_[k].slice;
        if (slice.data && scan_value(k) >= 0) runner_.copy(top(k), slice);
      }
    }
    finish();
  }

  void* tensor(size_t output, DType dtype, std::span<const int64_t> shape,
               bool on_device) override {
    if (output == 0) {
      if (dtype != DType::boolean || element_count(shape) != 1) {
        throw Error(ErrorKind::model, "a Loop's body must give one bool as its condition");
      }
      return &go_;
    }
    const size_t carried = stage_.carried.size();
    if (output <= carried) return carried_.next(output - 1, dtype, shape, on_device);
    return slice(output - 1 - carried, dtype, shape, on_device);
  }

  // The host decides whether to go on; the slices of a scan output lie all on one side.
  bool wants_on_device(size_t output, bool made_there) const override {
    const size_t carried = stage_.carried.size();
    if (output == 0) return false;
    if (output <= carried) return carried_.wants_on_device(output - 1, made_there);
    const Stack& stack = stacks_[output - 1 - carried];
    return stack.count ? stack.slice.on_device : made_there;
  }

  void value(size_t output, RunValue value) override {
    if (output == 0 || output > stage_.carried.size()) {
      throw Error(ErrorKind::model, "a Loop's condition and scan outputs must be tensors");
    }
    carried_.next(output - 1, std::move(value));
  }

  // A carried value that the body hands on unchanged needs no copy.
  bool wanted(size_t output) override {
    return output == 0 || output > stage_.carried.size() ||
           body_.outputs[output] != body_.inputs[output + 1];
  }

  void long_work() override { runner_.long_work(); }

 private:
  int64_t trip_count() const {
    const Tensor tensor = runner_.tensor(stage_.trip_count);
    if (element_count(tensor.shape) != 1) {
      throw Error(ErrorKind::input, "a Loop's trip count must be one number")
          .expected_got("int64[] or int64[1]", name_of(tensor.dtype) + text_of(tensor.shape));
    }
    return read_number(tensor.dtype, tensor.data, 0).i;
  }

  void set_inputs() {
    inputs_.clear();
    inputs_.push_back({DType::int64, {}, &iteration_});
    inputs_.push_back({DType::boolean, {}, &go_in_});
    go_in_ = go_;
    for (size_t c = 0; c < stage_.carried.size(); ++c) {
      inputs_.push_back(runner_.as_input(carried_[c]));
    }
    for (const RunValue& capture : captures_) inputs_.push_back(runner_.as_input(capture));
  }

  bool hands_on_condition() const {
    const Facts& body = runner_.child_unit(0).facts;
    const ValueId end = body.root[size_t(body_.outputs[0])];
    return end == body_.inputs[1];
  }

  ValueId scan_value(size_t k) const { return stage_.outputs[stage_.carried.size() + k]; }

  void* slice(size_t k, DType dtype, std::span<const int64_t> shape, bool on_device) {
    Stack& stack = stacks_[k];
    const Dims dims(shape);
    if (stack.count == 0) stack.slice = {dtype, dims, nullptr, nullptr, on_device};
    if (!(stack.slice.shape == dims)) {
      throw Error(ErrorKind::input, "a Loop's scan output must have one shape in all iterations")
          .expected_got(text_of(stack.slice.shape), text_of(dims));
    }
    ++stack.count;
    const size_t output = 1 + stage_.carried.size() + k;
    const bool written = on_device && !runner_.child_unit(0).facts.copied[output];
    if (scan_value(k) >= 0 && !written) return top(k);
    Buffer& one = runner_.child_context(0).handed[0][output];
    return stack.slice.data = runner_.reserve(one, stack.slice.bytes(), on_device);
  }

  // Room for the latest slice behind the others.
  std::byte* top(size_t k) {
    const Stack& stack = stacks_[k];
    const size_t bytes = stack.slice.bytes(), used = bytes * size_t(stack.count - 1);
    const bool fits = bytes > 0 && size_t(known_) < SIZE_MAX / bytes;
    const size_t all_bytes = std::max(used + bytes, fits ? bytes * size_t(known_) : 0);
    void* all = runner_.reserve(runner_.buffer(scan_value(k)), all_bytes,
                                stack.slice.on_device, used);
    return static_cast<std::byte*>(all) + used;
  }

  void finish() {
    carried_.finish();
    for (size_t k = 0; k < stacks_.size(); ++k) {
      const ValueId v = scan_value(k);
      if (v < 0) continue;
      if (iteration_ == 0) {
        set_inputs();
        const size_t output = 1 + stage_.carried.size() + k;
        stacks_[k].slice.shape = shape_without_running(runner_, output, inputs_);
      }
      const Tensor& slice = stacks_[k].slice;
      Tensor all{runner_.facts().value(v).dtype, {stacks_[k].count}, nullptr, nullptr,
                 slice.on_device};
      all.data = runner_.buffer(v).data(slice.on_device);
      for (int64_t d : slice.shape) all.shape.push_back(d);
      runner_.define(v, std::move(all));
    }
  }

  Runner& runner_;
  const Loop& stage_;
  const Program& body_;
  Carried carried_;
  std::vector<RunValue> captures_;
  std::vector<Stack> stacks_;
  std::vector<Input> inputs_;
  int64_t iteration_ = 0, known_ = 0;  // all iterations there will be; 0 where nodes decide
  bool go_ = true, go_in_ = true;
};

}  // namespace

void run_loop(Runner& runner, const Loop& stage) { LoopRun(runner, stage).run(); }

}  // namespace rlx
