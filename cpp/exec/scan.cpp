// Scan: one iteration for each slice of its inputs; outputs are written slice by slice.
#include <cstring>

#include "exec/carried.h"
#include "exec/stages.h"

namespace rlx {
namespace {

// One slice of a tensor along an axis: `outer` pieces of `inner` bytes.
struct Slicing {
  Slicing(DType dtype, const Dims& full, size_t axis)
      : outer(size_t(element_count({full.data(), axis}))),
        inner(size_t(element_count({full.data() + axis + 1, full.size() - axis - 1})) *
              size_of(dtype)),
        row(inner * size_t(full[axis])) {}

  void take(const void* full, int64_t index, void* slice) const {
    if (inner == 0) return;
    for (size_t o = 0; o < outer; ++o) {
      std::memcpy(static_cast<char*>(slice) + o * inner,
                  static_cast<const char*>(full) + o * row + size_t(index) * inner, inner);
    }
  }
  void put(void* full, int64_t index, const void* slice) const {
    if (inner == 0) return;
    for (size_t o = 0; o < outer; ++o) {
      std::memcpy(static_cast<char*>(full) + o * row + size_t(index) * inner,
                  static_cast<const char*>(slice) + o * inner, inner);
    }
  }

  size_t outer, inner, row;
};

Dims without_axis(const Dims& full, size_t axis) {
  Dims slice;
  for (size_t k = 0; k < full.size(); ++k)
    if (k != axis) slice.push_back(full[k]);
  return slice;
}

Dims with_axis(std::span<const int64_t> slice, size_t axis, int64_t length) {
  Dims full;
  for (size_t k = 0; k <= slice.size(); ++k) {
    if (k == axis) full.push_back(length);
    if (k < slice.size()) full.push_back(slice[k]);
  }
  return full;
}

class ScanRun final : public OutputSink {
 public:
  ScanRun(Runner& runner, const Scan& stage)
      : runner_(runner), stage_(stage), body_(*stage.body),
        carried_(runner, stage.states, stage.outputs, 0),
        slices_(stage.scan_inputs.size()), outputs_(stage.output_axes.size()) {
    for (ValueId v : stage.captures) captures_.push_back(runner.resident_value(v));
    for (ValueId v : stage.scan_inputs) scanned_.push_back(runner.tensor(v));
  }

  void run() {
    length_ = scan_length();
    for (size_t k = 0; k < scanned_.size(); ++k) {
      slices_[k] = {scanned_[k].dtype, without_axis(scanned_[k].shape, input_axis(k)), nullptr, {}};
      if (input_axis(k) != 0) slices_[k] = make_tensor(slices_[k].dtype, slices_[k].shape);
    }
    if (length_ > 0) {
      carried_.place();
      runner_.place(captures_, body_.inputs.size() - captures_.size());
    }
    Interruptible user;
    for (iteration_ = 0; iteration_ < length_; ++iteration_) {
      user.check();
      set_inputs();
      runner_.run_child(0, inputs_, *this);
      put_slices();
      carried_.advance();
    }
    finish();
  }

  void* tensor(size_t output, DType dtype, std::span<const int64_t> shape,
               bool on_device) override {
    if (output < stage_.states.size()) return carried_.next(output, dtype, shape, on_device);
    const size_t k = output - stage_.states.size();
    Output& out = outputs_[k];
    const Dims full = with_axis(shape, output_axis(k), length_);
    if (iteration_ == 0) {
      out.full = {dtype, full, nullptr, nullptr};
      if (value_of(k) >= 0) {
        runner_.check_type(value_of(k), dtype, full.size());
        out.full.data = runner_.result(value_of(k), full);
      } else {
        out.full = make_tensor(dtype, full);
      }
      if (output_axis(k) != 0) out.slice = make_tensor(dtype, Dims(shape));
    } else if (!(out.full.shape == full)) {
      throw Error(ErrorKind::input, "a Scan's output must have one shape in all iterations")
          .expected_got(text_of(out.full.shape), text_of(full));
    }
    if (output_axis(k) != 0) return out.slice.data;
    const size_t bytes = size_t(element_count(shape)) * size_of(dtype);
    return static_cast<std::byte*>(out.full.data) + bytes * size_t(output_index(k));
  }

  // Slices are cut and put together on the host.
  bool wants_on_device(size_t output, bool made_there) const override {
    return output < stage_.states.size() && carried_.wants_on_device(output, made_there);
  }

  void value(size_t output, RunValue value) override {
    if (output >= stage_.states.size()) {
      throw Error(ErrorKind::model, "a Scan's outputs must be tensors");
    }
    carried_.next(output, std::move(value));
  }

  bool wanted(size_t output) override {
    return output >= stage_.states.size() || body_.outputs[output] != body_.inputs[output];
  }

  void long_work() override { runner_.long_work(); }

 private:
  struct Output {
    Tensor full, slice;
  };

  static size_t wrapped(int axis, size_t rank) {
    return size_t(axis < 0 ? axis + int(rank) : axis);
  }
  size_t input_axis(size_t k) const {
    return wrapped(stage_.input_axes[k], scanned_[k].shape.size());
  }
  ValueId value_of(size_t k) const { return stage_.outputs[stage_.states.size() + k]; }
  size_t output_axis(size_t k) const {
    const ValueId slice = body_.outputs[stage_.states.size() + k];
    return wrapped(stage_.output_axes[k], body_.values[size_t(slice)].shape.size() + 1);
  }
  int64_t index(bool reverse) const { return reverse ? length_ - 1 - iteration_ : iteration_; }
  int64_t output_index(size_t k) const { return index(stage_.output_reverse[k]); }

  int64_t scan_length() const {
    int64_t length = 0;
    for (size_t k = 0; k < scanned_.size(); ++k) {
      const int64_t n = scanned_[k].shape[input_axis(k)];
      if (k > 0 && n != length) {
        throw Error(ErrorKind::input, "the scan inputs of a Scan must have one length")
            .expected_got(std::to_string(length), std::to_string(n));
      }
      length = n;
    }
    return length;
  }

  void set_inputs() {
    inputs_.clear();
    for (size_t c = 0; c < stage_.states.size(); ++c) {
      inputs_.push_back(runner_.as_input(carried_[c]));
    }
    for (size_t k = 0; k < scanned_.size(); ++k) {
      Tensor& slice = slices_[k];
      const int64_t at = index(stage_.input_reverse[k]);
      if (length_ > 0 && input_axis(k) == 0) {
        slice.data = static_cast<std::byte*>(scanned_[k].data) + slice.bytes() * size_t(at);
      } else if (length_ > 0) {
        const Slicing slicing(slice.dtype, scanned_[k].shape, input_axis(k));
        slicing.take(scanned_[k].data, at, slice.data);
      }
      inputs_.push_back({slice.dtype, slice.shape, slice.data});
    }
    for (const RunValue& capture : captures_) inputs_.push_back(runner_.as_input(capture));
  }

  void put_slices() {
    for (size_t k = 0; k < outputs_.size(); ++k) {
      const Tensor &full = outputs_[k].full, &slice = outputs_[k].slice;
      if (output_axis(k) == 0) continue;
      Slicing(full.dtype, full.shape, output_axis(k)).put(full.data, output_index(k), slice.data);
    }
  }

  void finish() {
    carried_.finish();
    if (length_ > 0) return;
    set_inputs();
    for (size_t k = 0; k < outputs_.size(); ++k) {
      if (value_of(k) < 0) continue;
      const size_t output = stage_.states.size() + k;
      const Dims slice = shape_without_running(runner_, output, inputs_);
      runner_.result(value_of(k), with_axis(slice, output_axis(k), 0));
    }
  }

  Runner& runner_;
  const Scan& stage_;
  const Program& body_;
  Carried carried_;
  std::vector<RunValue> captures_;
  std::vector<Tensor> scanned_, slices_;
  std::vector<Output> outputs_;
  std::vector<Input> inputs_;
  int64_t iteration_ = 0, length_ = 0;
};

}  // namespace

void run_scan(Runner& runner, const Scan& stage) { ScanRun(runner, stage).run(); }

}  // namespace rlx
