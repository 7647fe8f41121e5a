// The toy device's kernels and the toy program builder.
#include "tests/cpp/toy.h"

namespace rlx::test {
namespace {

class ToyArena final : public Arena {
 public:
  ToyArena() : memory_(mmap(nullptr, most, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~ToyArena() override { munmap(memory_, most); }
  std::byte* base() override { return static_cast<std::byte*>(memory_); }
  size_t size() const override { return size_; }
  void grow(size_t bytes) override {
    if (bytes > most) throw Error(ErrorKind::memory_limit, "the toy arena is small");
    size_ = std::max(size_, bytes);
  }

 private:
  static constexpr size_t most = size_t{1} << 30;
  void* memory_;
  size_t size_ = 0;
};

struct ToyStep final : StepBody {
  explicit ToyStep(std::function<void(const RunArgs&)> f) : f(std::move(f)) {}
  void run(const RunArgs& args) const override { f(args); }
  std::function<void(const RunArgs&)> f;
};

using Descs = std::vector<TensorDesc>;

void add_up(const Descs& inputs, const TensorDesc& y, const RunArgs& args) {
  auto* out = static_cast<float*>(args.operands[inputs.size()]);
  for (int64_t i = 0; i < y.count(); ++i) {
    float sum = 1;
    for (size_t k = 0; k < inputs.size(); ++k) {
      sum += static_cast<const float*>(args.operands[k])[inputs[k].count() == 1 ? 0 : i];
    }
    out[i] = sum;
  }
}

void scatter(const Descs& inputs, const TensorDesc& y, const RunArgs& args) {
  const auto* data = static_cast<const float*>(args.operands[0]);
  const auto* at = static_cast<const int64_t*>(args.operands[1]);
  const auto* updates = static_cast<const float*>(args.operands[2]);
  auto* out = static_cast<float*>(args.operands[3]);
  if (out != data) std::memcpy(out, data, y.bytes());
  for (int64_t i = 0; i < inputs[1].count(); ++i) out[at[i]] = updates[i];
}

// y[offsets + i] = x[starts + i] for every multi-index i < extents; no steps, no transposition.
void move(const Move& prim, const std::vector<Number>& numbers, const Descs& inputs,
          const TensorDesc& y, const RunArgs& args) {
  const auto number = [&](ExprId id) { return numbers[size_t(id)].i; };
  auto* out = static_cast<float*>(args.operands[inputs.size()]);
  for (const MovePart& part : prim.parts) {
    const TensorDesc& x = inputs[size_t(part.input)];
    const auto* in = static_cast<const float*>(args.operands[part.input]);
    Dims extents;
    for (ExprId e : part.extents) extents.push_back(number(e));
    Dims i(extents.size(), 0);
    for (int64_t n = element_count(extents); n > 0; --n) {
      int64_t from = 0, to = 0;
      for (size_t k = 0; k < i.size(); ++k) {
        from += (number(part.starts[k]) + i[k]) * x.strides[k];
        to += (number(part.offsets[k]) + i[k]) * y.strides[k];
      }
      out[to] = in[from];
      for (size_t k = i.size(); k-- > 0;) {
        if (++i[k] < extents[k]) break;
        i[k] = 0;
      }
    }
  }
}

}  // namespace

std::map<std::string, ToyBody>& toy_bodies() {
  static std::map<std::string, ToyBody> bodies;
  return bodies;
}

std::unique_ptr<Arena> ToyDevice::make_arena() const { return std::make_unique<ToyArena>(); }

Selection ToyDevice::select(const SelectRequest& r) const {
  ++selections;
  const Descs inputs(r.inputs.begin(), r.inputs.end()), outputs(r.outputs.begin(), r.outputs.end());
  std::function<void(const RunArgs&)> f;
  Selection selection;
  if (const auto* map = std::get_if<Map>(&r.prim)) {
    const ToyBody body = toy_bodies().at(map->body);
    selection.workspace = workspace;
    std::vector<int64_t> ints;
    for (const ExprId e : map->ints) ints.push_back(r.numbers[size_t(e)].i);
    f = [=](const RunArgs& args) { body({inputs, outputs, ints, &args}); };
  } else if (std::holds_alternative<Region>(r.prim)) {
    f = [=, this](const RunArgs& args) {
      {
        const std::lock_guard lock(mutex);  // tests run one program from several threads
        addresses.push_back(args.operands[inputs.size()]);
      }
      add_up(inputs, outputs[0], args);
    };
  } else if (std::holds_alternative<Scatter>(r.prim)) {
    f = [=](const RunArgs& args) { scatter(inputs, outputs[0], args); };
  } else if (const auto* m = std::get_if<Move>(&r.prim)) {
    const std::vector<Number> numbers(r.numbers.begin(), r.numbers.end());
    f = [=, m = *m](const RunArgs& args) { move(m, numbers, inputs, outputs[0], args); };
  } else {
    throw Error(ErrorKind::unsupported, "the toy device has no such primitive");
  }
  selection.steps.push_back({StepKind::launch, std::make_shared<ToyStep>(std::move(f))});
  selection.rung = "toy";
  return selection;
}

ExprId Toy::number(int64_t i) {
  program.exprs.push_back({.op = ExprOp::const_int, .i = i});
  return ExprId(program.exprs.size()) - 1;
}

ExprId Toy::dim(ValueId v, int64_t axis, ExprId upper, ExprId capacity) {
  program.symbols.push_back({Symbol::Kind::dim, v, axis, false, upper, capacity, ""});
  program.exprs.push_back({.op = ExprOp::symbol, .i = int64_t(program.symbols.size()) - 1});
  return ExprId(program.exprs.size()) - 1;
}

ExprId Toy::element(ValueId v, int64_t index, ExprId upper) {
  const ExprId row = dim(v, index, upper);
  program.symbols.back().kind = Symbol::Kind::element;
  return row;
}

ExprId Toy::apply(ExprOp op, ExprId a, ExprId b) {
  program.exprs.push_back({.op = op, .args = {a, b, -1}});
  return ExprId(program.exprs.size()) - 1;
}

std::vector<ExprId> Toy::numbers(std::span<const int64_t> dims) {
  std::vector<ExprId> ids;
  for (int64_t d : dims) ids.push_back(number(d));
  return ids;
}

ValueId Toy::value(DType dtype, std::vector<ExprId> shape, std::string name) {
  Value v;
  v.dtype = dtype;
  v.shape = std::move(shape);
  v.name = name.empty() ? "v" + std::to_string(program.values.size()) : std::move(name);
  program.values.push_back(std::move(v));
  return ValueId(program.values.size()) - 1;
}

ValueId Toy::input(std::string name, std::vector<int64_t> dims, DType dtype) {
  const ValueId v = value(dtype, {}, name);
  std::vector<ExprId> shape;
  for (size_t k = 0; k < dims.size(); ++k) {
    shape.push_back(dims[k] < 0 ? dim(v, int64_t(k)) : number(dims[k]));
  }
  at(v).shape = shape;
  program.inputs.push_back(v);
  program.input_names.push_back(std::move(name));
  return v;
}

ValueId Toy::sequence_input(std::string name) {
  const ValueId v = input(std::move(name), {});
  at(v).kind = ValueKind::sequence;
  return v;
}

ValueId Toy::alias(ValueId of, std::vector<ExprId> shape) {
  const ValueId v = value(at(of).dtype, std::move(shape));
  at(v).alias_of = of;
  return v;
}

void Toy::output(std::string name, ValueId v) {
  program.outputs.push_back(v);
  program.output_names.push_back(std::move(name));
}

void Toy::node(Prim prim, std::vector<ValueId> inputs, std::vector<ValueId> outputs) {
  if (program.stages.empty() || !std::holds_alternative<Segment>(program.stages.back())) {
    program.stages.push_back(Segment{});
  }
  program.origins.push_back({"node" + std::to_string(program.origins.size()), "Toy", "", 1, {}});
  std::get<Segment>(program.stages.back())
      .nodes.push_back({std::move(prim), std::move(inputs), std::move(outputs),
                        int32_t(program.origins.size()) - 1});
}

void Toy::map(std::string body, std::vector<ValueId> inputs, std::vector<ValueId> outputs,
              std::vector<int64_t> ints) {
  std::vector<ExprId> numbers;
  for (const int64_t n : ints) numbers.push_back(number(n));
  node(Map{std::move(body), number(1), std::move(numbers), {}}, std::move(inputs),
       std::move(outputs));
}

ValueId Toy::region(std::vector<ValueId> inputs) {
  const ValueId y = value(DType::float32, shape(inputs[0]));
  Region region;
  region.shape = shape(y);
  std::vector<AxisMap> identity;
  for (size_t k = 0; k < region.shape.size(); ++k) identity.push_back({int(k), -1, -1});
  region.accesses.assign(inputs.size(), identity);
  region.results = {0};
  node(region, std::move(inputs), {y});
  return y;
}

std::vector<RunValue> run(Executable& executable, std::vector<Input> inputs, State* state) {
  KeptOutputs sink(executable.main().facts.program->outputs.size());
  StringTable strings(&executable.constant_strings());
  executable.run(inputs, sink, &strings, state);
  return std::move(sink.values);
}

}  // namespace rlx::test
