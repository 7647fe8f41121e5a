// If: runs one of two subgraphs, straight into the stage's outputs.
#include "exec/stages.h"

namespace rlx {
namespace {

// A branch writes its tensors where the stage's outputs go.
class BranchSink final : public OutputSink {
 public:
  BranchSink(Runner& runner, const If& stage, bool taken)
      : runner_(runner), stage_(stage), unread_(runner.child_context(taken ? 0 : 1).handed[0]) {
    unread_.resize(stage.outputs.size());
  }

  void* tensor(size_t output, DType dtype, std::span<const int64_t> shape,
               bool on_device) override {
    const ValueId v = stage_.outputs[output];
    const size_t bytes = size_t(element_count(shape)) * size_of(dtype);
    if (v < 0) return runner_.reserve(unread_[output], bytes, on_device);
    runner_.check_type(v, dtype, shape.size());
    return runner_.result(v, Dims(shape), on_device);
  }
  bool wants_on_device(size_t output, bool made_there) const override {
    const ValueId v = stage_.outputs[output];
    return made_there && (v < 0 || !runner_.facts().for_host[size_t(v)]);
  }
  void value(size_t output, RunValue value) override {
    if (stage_.outputs[output] >= 0) runner_.define(stage_.outputs[output], std::move(value));
  }
  bool wanted(size_t output) override { return stage_.outputs[output] >= 0; }
  void long_work() override { runner_.long_work(); }

 private:
  Runner& runner_;
  const If& stage_;
  std::vector<Buffer>& unread_;
};

}  // namespace

bool truth_of(const Tensor& tensor, const char* what) {
  if (tensor.dtype != DType::boolean || element_count(tensor.shape) != 1) {
    throw Error(ErrorKind::input, std::string(what) + " must be one bool")
        .expected_got("bool[] or bool[1]", name_of(tensor.dtype) + text_of(tensor.shape));
  }
  return *static_cast<const uint8_t*>(tensor.data) != 0;
}

void run_if(Runner& runner, const If& stage) {
  const bool taken = truth_of(runner.tensor(stage.condition), "the condition of an If");
  std::vector<RunValue> captures;
  for (ValueId v : stage.captures) captures.push_back(runner.resident_value(v));
  std::vector<Input> inputs;
  for (const RunValue& value : captures) inputs.push_back(runner.as_input(value));
  BranchSink sink(runner, stage, taken);
  runner.run_child(taken ? 0 : 1, inputs, sink);
}

}  // namespace rlx
