// Runs one primitive through the CPU's select functions, on guarded buffers and without exec.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend.h"
#include "cpu/device.h"
#include "tests/cpp/check.h"

namespace rlx::test {

struct Tensor {
  DType dtype = DType::none;
  Dims shape;
  std::vector<std::byte> bytes;
  bool constant = false;

  template <class T>
  const T* data() const { return reinterpret_cast<const T*>(bytes.data()); }
  template <class T>
  T* data() { return reinterpret_cast<T*>(bytes.data()); }
  int64_t count() const { return element_count(shape); }
};

inline Tensor absent() { return {}; }

template <class T>
Tensor tensor(DType dtype, Dims shape, const std::vector<T>& values, bool constant = false) {
  Tensor made{dtype, std::move(shape), std::vector<std::byte>(values.size() * sizeof(T)), constant};
  if (!values.empty()) std::memcpy(made.bytes.data(), values.data(), made.bytes.size());
  check_equal(size_t(made.count()), values.size());
  return made;
}

class Packs : public PackCache {
 public:
  std::shared_ptr<const void> get(const Constant& constant, const std::string& format, size_t bytes,
                                  const std::function<void(void*)>& fill) override {
    auto& found = packed_[{constant.data, format}];
    if (!found) {
      found = {std::aligned_alloc(64, (bytes + 63) / 64 * 64 + 64), std::free};
      std::memset(found.get(), 0xff, bytes);
      fill(found.get());
    }
    return found;
  }

 private:
  std::map<std::pair<const void*, std::string>, std::shared_ptr<void>> packed_;
};

struct PrimRun {
  std::vector<Tensor> outputs;
  std::string rung, reason;
};

// Numbers that Dim fields of the prim name: dim id i is numbers[i].
struct Numbers {
  std::vector<Number> table;
  ExprId operator()(int64_t value) {
    table.push_back({value, double(value), true});
    return ExprId(table.size() - 1);
  }
};

inline TensorDesc describe(const Tensor& t, const Constant* constant) {
  TensorDesc desc{t.dtype, t.shape, Dims(t.shape.size(), 1), constant};
  for (size_t k = t.shape.size(); k-- > 1;) desc.strides[k - 1] = desc.strides[k] * t.shape[k];
  return desc;
}

// A buffer that is NaN all over, with a guard behind it that must stay as it is.
class Guarded {
 public:
  explicit Guarded(size_t bytes)
      : bytes_(bytes), memory_(std::aligned_alloc(64, (bytes + 64 + 63) / 64 * 64), std::free) {
    std::memset(memory_.get(), 0xff, bytes);
    std::memset(static_cast<char*>(memory_.get()) + bytes, 0x5a, 64);
  }
  void* get() const { return memory_.get(); }
  void check_guard() const {
    const char* guard = static_cast<const char*>(memory_.get()) + bytes_;
    for (int i = 0; i < 64; ++i) check(guard[i] == 0x5a, "wrote behind a buffer");
  }

 private:
  size_t bytes_;
  std::unique_ptr<void, void (*)(void*)> memory_;
};

// Selects and runs `prim` twice with one state; `outputs` give types and shapes.
inline PrimRun run_prim(const Prim& prim, const std::vector<Tensor>& inputs,
                        std::vector<Tensor> outputs, const Numbers& numbers, int threads = 1,
                        std::string_view force = "") {
  std::vector<Constant> constants(inputs.size());
  std::vector<TensorDesc> in, out;
  std::vector<void*> operands;
  std::vector<Guarded> buffers;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& t = inputs[i];
    constants[i] = {t.bytes.data(), t.bytes.size(), {}, {}, false};
    in.push_back(describe(t, t.constant ? &constants[i] : nullptr));
    const bool given = t.dtype != DType::none;
    operands.push_back(given ? const_cast<std::byte*>(t.bytes.data()) : nullptr);
  }
  for (const Tensor& t : outputs) {
    out.push_back(describe(t, nullptr));
    buffers.emplace_back(out.back().bytes());
    operands.push_back(t.dtype == DType::none ? nullptr : buffers.back().get());
  }
  Packs packs;
  const SelectRequest request{prim, in, out, numbers.table, threads, force, packs};
  const Selection selection = cpu::make_cpu_device()->select(request);
  std::vector<std::unique_ptr<StepState>> states;
  for (const SelectedStep& step : selection.steps) states.push_back(step.body->make_state());
  uint64_t random = 0;
  for (int repeat = 0; repeat < 2; ++repeat) {
    const Guarded workspace(selection.workspace);
    for (size_t i = 0; i < selection.steps.size(); ++i) {
      selection.steps[i].body->run({operands.data(), workspace.get(), states[i].get(), threads,
                                    nullptr, &random});
    }
    workspace.check_guard();
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    buffers[i].check_guard();
    const std::byte* bytes = static_cast<const std::byte*>(buffers[i].get());
    outputs[i].bytes.assign(bytes, bytes + out[i].bytes());
  }
  return {std::move(outputs), selection.rung, selection.reason};
}

}  // namespace rlx::test
