// A toy device and a builder of toy programs: the executor is tested without any real kernel.
#pragma once

#include <sys/mman.h>

#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>

#include "backend.h"
#include "exec/executable.h"
#include "exec/state.h"
#include "tests/cpp/check.h"

namespace rlx::test {

// A Map body of the toy device: operands at the dims they were selected for.
struct ToyCall {
  std::vector<TensorDesc> inputs, outputs;
  std::vector<int64_t> ints;
  const RunArgs* args = nullptr;

  template <class T>
  T* in(size_t i) const { return static_cast<T*>(args->operands[i]); }
  template <class T>
  T* out(size_t i) const { return static_cast<T*>(args->operands[inputs.size() + i]); }
};
using ToyBody = std::function<void(const ToyCall&)>;
std::map<std::string, ToyBody>& toy_bodies();

// Counts what it is asked for. Region adds up its inputs and 1, Scatter and Move do what they are
// for (float32, one-dimensional indices), Map calls a toy body.
class ToyDevice final : public Device {
 public:
  std::string name() const override { return "toy"; }
  Selection select(const SelectRequest& request) const override;
  std::unique_ptr<Arena> make_arena() const override;
  int default_threads() const override { return 4; }

  mutable std::atomic<int> selections{0};
  mutable std::mutex mutex;
  mutable std::vector<const void*> addresses;  // of the outputs of Regions, as they ran
  size_t workspace = 0;                        // that Map bodies get
};

// Builds a Program whose symbols and expressions are named by what they stand for.
class Toy {
 public:
  ExprId number(int64_t i);
  ExprId dim(ValueId v, int64_t axis, ExprId upper = -1, ExprId capacity = -1);
  ExprId element(ValueId v, int64_t index, ExprId upper = -1);
  ExprId apply(ExprOp op, ExprId a, ExprId b);

  ValueId value(DType dtype, std::vector<ExprId> shape, std::string name = "");
  // Dims of -1 become symbols of the input.
  ValueId input(std::string name, std::vector<int64_t> dims, DType dtype = DType::float32);
  ValueId sequence_input(std::string name);
  template <class T>
  ValueId constant(DType dtype, std::vector<int64_t> dims, std::vector<T> data) {
    auto owner = std::make_shared<std::vector<T>>(std::move(data));
    const ValueId v = value(dtype, numbers(dims));
    at(v).constant = int32_t(program.constants.size());
    program.constants.push_back({owner->data(), owner->size() * sizeof(T), "", owner, false});
    return v;
  }
  ValueId alias(ValueId of, std::vector<ExprId> shape);
  void output(std::string name, ValueId v);

  // A node in the last segment, which is begun where needed; its outputs must exist.
  void node(Prim prim, std::vector<ValueId> inputs, std::vector<ValueId> outputs);
  void map(std::string body, std::vector<ValueId> inputs, std::vector<ValueId> outputs,
           std::vector<int64_t> ints = {});
  // A float32 Region over the shape of its inputs; gives its output.
  ValueId region(std::vector<ValueId> inputs);
  void stage(Stage stage) { program.stages.push_back(std::move(stage)); }

  Value& at(ValueId v) { return program.values[size_t(v)]; }
  std::vector<ExprId> shape(ValueId v) { return at(v).shape; }
  std::vector<ExprId> numbers(std::span<const int64_t> dims);
  ProgramPtr done() const { return std::make_shared<Program>(program); }

  Program program;
};

// A sink that keeps what it gets.
struct KeptOutputs final : OutputSink {
  explicit KeptOutputs(size_t count) : values(count) {}
  void* tensor(size_t output, DType dtype, std::span<const int64_t> shape, bool) override {
    values[output] = make_tensor(dtype, Dims(shape));
    return std::get<Tensor>(values[output]).data;
  }
  void value(size_t output, RunValue value) override { values[output] = std::move(value); }

  std::vector<RunValue> values;
};

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) return DType::float32;
  if constexpr (std::is_same_v<T, int64_t>) return DType::int64;
  if constexpr (std::is_same_v<T, bool>) return DType::boolean;
}

// An input made of numbers.
struct Array {
  template <class T>
  Array(std::vector<int64_t> dims, std::vector<T> data) : shape(std::move(dims)) {
    tensor = make_tensor(dtype_of<T>(), Dims(std::span<const int64_t>(shape)));
    for (size_t i = 0; i < data.size(); ++i) static_cast<T*>(tensor.data)[i] = data[i];
  }
  operator Input() const { return {tensor.dtype, shape, tensor.data}; }
  std::vector<int64_t> shape;
  Tensor tensor;
};

inline Array floats(std::vector<int64_t> dims, std::vector<float> data) { return {dims, data}; }
inline Array ints(std::vector<int64_t> dims, std::vector<int64_t> data) { return {dims, data}; }

std::vector<RunValue> run(Executable& executable, std::vector<Input> inputs,
                          State* state = nullptr);

template <class T = float>
std::vector<T> data_of(const RunValue& value) {
  const Tensor& t = std::get<Tensor>(value);
  const T* data = static_cast<const T*>(t.data);
  return std::vector<T>(data, data + element_count(t.shape));
}

inline std::vector<int64_t> shape_of(const RunValue& value) {
  const Dims& shape = std::get<Tensor>(value).shape;
  return {shape.begin(), shape.end()};
}

}  // namespace rlx::test

namespace std {  // for check_equal
template <class T>
ostream& operator<<(ostream& out, const vector<T>& xs) {
  out << "[";
  for (const T& x : xs) out << x << " ";
  return out << "]";
}
}  // namespace std
