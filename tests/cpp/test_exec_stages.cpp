// Programs of several stages: runtime symbols, If, Loop, Scan, sequences, host calls.
#include "exec/hooks.h"
#include "tests/cpp/toy.h"

namespace rlx::test {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

// y = the positive elements of x, count = how many; x may have any length.
void add_positive_body() {
  toy_bodies()["positive"] = [](const ToyCall& c) {
    int64_t n = 0;
    for (int64_t i = 0; i < c.inputs[0].count(); ++i) {
      if (c.in<float>(0)[i] > 0) c.out<float>(0)[n++] = c.in<float>(0)[i];
    }
    *c.out<int64_t>(1) = n;
  };
  toy_bodies()["set"] = [](const ToyCall& c) {  // out = ints, int64 or bool
    for (size_t i = 0; i < c.ints.size(); ++i) {
      if (c.outputs[0].dtype == DType::boolean) c.out<bool>(0)[i] = c.ints[i] != 0;
      else c.out<int64_t>(0)[i] = c.ints[i];
    }
  };
  toy_bodies()["less"] = [](const ToyCall& c) {  // in0 < ints[0]
    *c.out<bool>(0) = *c.in<int64_t>(0) < c.ints[0];
  };
  toy_bodies()["append"] = [](const ToyCall& c) {  // in0, then float(in1)
    std::memcpy(c.out<float>(0), c.in<float>(0), c.inputs[0].bytes());
    c.out<float>(0)[c.inputs[0].count()] = float(*c.in<int64_t>(1));
  };
}

struct Positive {
  Toy toy;
  ValueId x, y, count;
  Positive() {
    add_positive_body();
    x = toy.input("x", {-1});
    count = toy.value(DType::int64, {toy.number(1)}, "count");
    y = toy.value(DType::float32, {toy.element(count, 0, toy.shape(x)[0])}, "y");
    toy.map("positive", {x}, {y, count});
  }
};

const Test runtime_symbol{"stages: a count leads to the plan of the next stage", [] {
  Positive p;
  ValueId z = p.toy.alias(p.y, p.toy.shape(p.y));
  p.toy.stage(Segment{});
  z = p.toy.region({z});
  p.toy.output("z", z);
  p.toy.output("y", p.y);
  Executable exe(p.toy.done(), std::make_shared<ToyDevice>());
  for (int round = 0; round < 3; ++round) {
    auto got = run(exe, {floats({4}, {1, -1, 2, -2})});
    check_equal(data_of(got[0]), Floats{2, 3});
    check_equal(data_of(got[1]), Floats{1, 2});
    got = run(exe, {floats({4}, {1, -1, 2, 3})});
    check_equal(data_of(got[0]), Floats{2, 3, 4});
    got = run(exe, {floats({2}, {-1, -1})});
    check_equal(shape_of(got[0]), Ints{0});
  }
  check_equal(exe.counters().plans.load(), int64_t{2});
  check_equal(exe.counters().stage_binds.load(), int64_t{5});
}};

const Test last_symbol{"stages: an output as long as its own segment finds", [] {
  Positive p;
  p.toy.output("y", p.y);
  Executable exe(p.toy.done(), std::make_shared<ToyDevice>(), nullptr, {.check_memory = true});
  check_equal(data_of(run(exe, {floats({4}, {5, -1, 2, -2})})[0]), Floats{5, 2});
  check_equal(shape_of(run(exe, {floats({0}, {})})[0]), Ints{0});
}};

const Test memory_across{"stages: values that live across cuts keep their place", [] {
  Positive p;
  ValueId early = p.toy.region({p.x});   // read at the end
  const ValueId never = p.toy.region({early});
  p.toy.output("early", p.toy.region({never}));
  p.toy.stage(Segment{});
  ValueId z = p.y;
  for (int i = 0; i < 4; ++i) z = p.toy.region({z, z});
  p.toy.stage(Segment{});
  p.toy.output("sum", p.toy.region({early}));
  p.toy.output("z", z);
  Executable exe(p.toy.done(), std::make_shared<ToyDevice>(), nullptr, {.check_memory = true});
  for (int n : {3, 40, 3}) {
    const auto got = run(exe, {floats({n}, Floats(size_t(n), 1))});
    check_equal(data_of(got[0]), Floats(size_t(n), 4));
    check_equal(data_of(got[1]), Floats(size_t(n), 3));
    check_equal(data_of(got[2]), Floats(size_t(n), 31));
  }
}};

ProgramPtr branch(bool plus) {
  Toy toy;
  const ValueId x = toy.input("x", {-1});
  toy.output("y", plus ? toy.region({x, x}) : x);
  return toy.done();
}

const Test if_takes{"stages: If runs one branch into its outputs", [] {
  Toy toy;
  const ValueId condition = toy.input("c", {}, DType::boolean), x = toy.input("x", {-1});
  const ValueId y = toy.value(DType::float32, {0});
  toy.at(y).shape = {toy.dim(y, 0)};
  toy.stage(If{condition, branch(true), branch(false), {x}, {y}, -1});
  toy.output("y", y);
  toy.output("z", toy.region({y}));
  Executable exe(toy.done(), std::make_shared<ToyDevice>());
  for (int round = 0; round < 2; ++round) {
    auto got = run(exe, {Array({}, std::vector<bool>{true}), floats({2}, {3, 4})});
    check_equal(data_of(got[0]), Floats{7, 9});
    check_equal(data_of(got[1]), Floats{8, 10});
    got = run(exe, {Array({}, std::vector<bool>{false}), floats({2}, {3, 4})});
    check_equal(data_of(got[0]), Floats{3, 4});
    check_equal(data_of(got[1]), Floats{4, 5});
  }
  check_equal(exe.counters().child_runs.load(), int64_t{4});
  check_equal(exe.counters().stage_binds.load(), int64_t{4});  // If, after it, both branches
}};

// A loop that grows carried `a` by its iteration number and stacks `a`'s captured sibling + 1.
struct LoopCase {
  Toy toy;
  ValueId grown, stacked;
  explicit LoopCase(int64_t stop_at) {
    add_positive_body();
    Toy body;
    const ValueId i = body.input("i", {}, DType::int64);
    body.input("c", {}, DType::boolean);
    const ValueId a = body.input("a", {-1});
    const ValueId k = body.input("k", {-1});
    const ValueId more = body.value(DType::boolean, {});
    body.map("less", {i}, {more}, {stop_at});
    const ExprId longer = body.apply(ExprOp::add, body.shape(a)[0], body.number(1));
    const ValueId next = body.value(DType::float32, {longer});
    body.map("append", {a, i}, {next});
    const ValueId slice = body.region({k});
    for (ValueId v : {more, next, slice}) body.output("o", v);

    const ValueId trips = toy.input("trips", {}, DType::int64);
    const ValueId start = toy.input("a", {-1}), captured = toy.input("k", {-1});
    grown = toy.value(DType::float32, {0}, "grown");
    toy.at(grown).shape = {toy.dim(grown, 0)};
    stacked = toy.value(DType::float32, {0, 0}, "stacked");
    toy.at(stacked).shape = {toy.dim(stacked, 0), toy.dim(stacked, 1)};
    toy.stage(Loop{trips, -1, body.done(), {start}, {captured}, {grown, stacked}, 1, -1});
  }
};

const Test loops{"stages: a Loop's carried shapes grow, scans stack, zero trips give empties", [] {
  LoopCase c(100);
  c.toy.output("grown", c.grown);
  c.toy.output("stacked", c.stacked);
  c.toy.output("next", c.toy.region({c.grown}));
  Executable exe(c.toy.done(), std::make_shared<ToyDevice>(), nullptr, {.check_memory = true});
  const Array a = floats({1}, {9}), k = floats({2}, {5, 6});
  for (int round = 0; round < 2; ++round) {
    auto got = run(exe, {ints({}, {3}), a, k});
    check_equal(data_of(got[0]), Floats{9, 0, 1, 2});
    check_equal(shape_of(got[1]), Ints{3, 2});
    check_equal(data_of(got[1]), Floats{6, 7, 6, 7, 6, 7});
    check_equal(data_of(got[2]), Floats{10, 1, 2, 3});
    got = run(exe, {ints({}, {0}), a, k});
    check_equal(data_of(got[0]), Floats{9});
    check_equal(shape_of(got[1]), Ints{0, 2});
    check_equal(data_of(got[2]), Floats{10});
  }
  const int64_t binds = exe.counters().stage_binds;
  run(exe, {ints({}, {3}), a, k});
  check_equal(exe.counters().stage_binds.load(), binds);
}};

const Test loop_stops{"stages: a Loop ends when its condition does", [] {
  LoopCase c(2);
  c.toy.output("grown", c.grown);
  c.toy.output("stacked", c.stacked);
  Executable exe(c.toy.done(), std::make_shared<ToyDevice>());
  const auto got = run(exe, {ints({}, {50}), floats({0}, {}), floats({1}, {0})});
  check_equal(data_of(got[0]), Floats{0, 1, 2});
  check_equal(shape_of(got[1]), Ints{3, 1});
}};

const Test carries_unchanged{"stages: carried values may be swapped or left alone", [] {
  Toy body;
  const ValueId i = body.input("i", {}, DType::int64), c = body.input("c", {}, DType::boolean);
  const ValueId a = body.input("a", {1}), b = body.input("b", {1}), k = body.input("k", {1});
  (void)i;
  for (ValueId v : {c, b, a, k}) body.output("o", v);
  Toy toy;
  const ValueId trips = toy.input("trips", {}, DType::int64);
  std::vector<ValueId> in, out;
  for (const char* name : {"a", "b", "k"}) in.push_back(toy.input(name, {1}));
  for (int j = 0; j < 3; ++j) out.push_back(toy.value(DType::float32, {toy.number(1)}));
  toy.stage(Loop{trips, -1, body.done(), in, {}, out, 0, -1});
  for (ValueId v : out) toy.output("o", v);
  toy.output("sum", toy.region(out));
  Executable exe(toy.done(), std::make_shared<ToyDevice>());
  const Array x = floats({1}, {1}), y = floats({1}, {2}), z = floats({1}, {4});
  auto got = run(exe, {ints({}, {3}), x, y, z});
  check_equal(data_of(got[0]), Floats{2});
  check_equal(data_of(got[1]), Floats{1});
  check_equal(data_of(got[2]), Floats{4});
  check_equal(data_of(got[3]), Floats{8});
}};

const Test scans{"stages: Scan walks its axes, backwards too", [] {
  Toy body;
  const ValueId state = body.input("s", {2}), x = body.input("x", {2});
  const ValueId sum = body.region({state, x});
  body.output("s", sum);
  body.output("y", sum);
  Toy toy;
  const ValueId s = toy.input("s", {2}), xs = toy.input("xs", {2, -1});
  const ValueId last = toy.value(DType::float32, {toy.number(2)});
  const ValueId ys = toy.value(DType::float32, {toy.number(2), toy.shape(xs)[1]});
  Scan scan{body.done(), {s}, {xs}, {}, {last, ys}, {1}, {1}, {true}, {false}, -1};
  toy.stage(scan);
  toy.output("last", last);
  toy.output("ys", ys);
  Executable exe(toy.done(), std::make_shared<ToyDevice>());
  // From the last column on: s + x + 1 each time.
  auto got = run(exe, {floats({2}, {0, 100}), floats({2, 3}, {1, 2, 3, 10, 20, 30})});
  check_equal(data_of(got[0]), Floats{9, 163});
  check_equal(data_of(got[1]), Floats{4, 7, 9, 131, 152, 163});
  got = run(exe, {floats({2}, {7, 8}), floats({2, 0}, {})});
  check_equal(data_of(got[0]), Floats{7, 8});
  check_equal(shape_of(got[1]), Ints{2, 0});
}};

ValueId sequence(Toy& toy) {
  const ValueId v = toy.value(DType::float32, {});
  toy.at(v).kind = ValueKind::sequence;
  return v;
}

SequenceOp op(SequenceKind kind, std::vector<ValueId> inputs, std::vector<ValueId> outputs) {
  SequenceOp made;
  made.kind = kind, made.dtype = DType::float32;
  made.inputs = std::move(inputs), made.outputs = std::move(outputs);
  return made;
}

const Test sequences{"stages: sequences are built, changed and taken apart", [] {
  Toy toy;
  const ValueId x = toy.input("x", {-1}), at = toy.input("at", {}, DType::int64);
  const ValueId y = toy.region({x});
  const ValueId s = sequence(toy), longer = sequence(toy), shorter = sequence(toy);
  toy.stage(op(SequenceKind::construct, {x, y}, {s}));
  toy.stage(op(SequenceKind::insert, {s, x, at}, {longer}));
  toy.stage(op(SequenceKind::erase, {longer}, {shorter}));
  const ValueId n = toy.value(DType::int64, {}), item = toy.value(DType::float32, {});
  toy.at(item).shape = {toy.dim(item, 0)};
  const ValueId all = toy.value(DType::float32, {});
  toy.at(all).shape = {toy.dim(all, 0), toy.dim(all, 1)};
  toy.stage(op(SequenceKind::length, {longer}, {n}));
  toy.stage(op(SequenceKind::at, {longer, at}, {item}));
  SequenceOp concat = op(SequenceKind::concat, {longer}, {all});
  concat.axis = 1, concat.new_axis = true;
  toy.stage(concat);
  toy.output("n", n);
  toy.output("z", toy.region({item}));
  toy.output("all", all);
  toy.output("shorter", shorter);
  Executable exe(toy.done(), std::make_shared<ToyDevice>());
  auto got = run(exe, {floats({2}, {1, 2}), ints({}, {-1})});
  check_equal(data_of<int64_t>(got[0]), Ints{3});
  check_equal(data_of(got[1]), Floats{3, 4});  // the last is y = x + 1
  check_equal(shape_of(got[2]), Ints{2, 3});
  check_equal(data_of(got[2]), Floats{1, 1, 2, 2, 2, 3});
  check_equal(std::get<Sequence>(got[3]).items->size(), size_t{2});
  check_throws<Error>([&] { run(exe, {floats({2}, {1, 2}), ints({}, {3})}); }, "position 3");
  check_throws<Error>([&] { run(exe, {floats({2}, {1, 2}), ints({}, {-4})}); }, "position -4");
}};

const Test optionals{"stages: optionals are present or absent", [] {
  Toy toy;
  const ValueId x = toy.input("x", {1});
  const ValueId full = sequence(toy), empty = sequence(toy), y = toy.value(DType::float32, {});
  toy.at(full).kind = toy.at(empty).kind = ValueKind::optional;
  toy.at(y).shape = {toy.number(1)};
  const ValueId yes = toy.value(DType::boolean, {}), no = toy.value(DType::boolean, {});
  toy.stage(op(SequenceKind::optional, {x}, {full}));
  toy.stage(op(SequenceKind::optional, {}, {empty}));
  toy.stage(op(SequenceKind::has_element, {full}, {yes}));
  toy.stage(op(SequenceKind::has_element, {empty}, {no}));
  toy.stage(op(SequenceKind::get_element, {full}, {y}));
  for (ValueId v : {yes, no, y, empty}) toy.output("o", v);
  Executable exe(toy.done(), std::make_shared<ToyDevice>());
  const auto got = run(exe, {floats({1}, {6})});
  check(data_of<bool>(got[0])[0] && !data_of<bool>(got[1])[0]);
  check_equal(data_of(got[2]), Floats{6});
  check(std::get<Optional>(got[3]).value == nullptr);
}};

const Test host_stage{"stages: a Host stage calls its function", [] {
  const Hooks saved = hooks();
  hooks().call_host = [](const Host& host, std::span<const RunValue> in, std::span<RunValue> out,
                         StringTable*) {
    check_equal(host.function, std::string("double"));
    Tensor y = copy_of(std::get<Tensor>(in[0]));
    for (int64_t i = 0; i < element_count(y.shape); ++i) static_cast<float*>(y.data)[i] *= 2;
    out[0] = y;
  };
  Toy toy;
  const ValueId x = toy.input("x", {2});
  const ValueId y = toy.value(DType::float32, toy.shape(x));
  toy.stage(Host{"double", nullptr, {toy.region({x})}, {y}, -1});
  toy.output("y", y);
  toy.output("z", toy.region({y}));
  Executable exe(toy.done(), std::make_shared<ToyDevice>());
  const auto got = run(exe, {floats({2}, {1, 2})});
  hooks() = saved;
  check_equal(data_of(got[0]), Floats{4, 6});
  check_equal(data_of(got[1]), Floats{5, 7});
  check_equal(exe.counters().host_calls.load(), int64_t{1});
}};

const Test strings_shared{"stages: equal strings have equal ids, constants too", [] {
  Toy toy;
  toy.program.strings = {"", "b", "a"};
  const ValueId x = toy.input("x", {2}, DType::string);
  const ValueId k = toy.constant<int64_t>(DType::string, {1}, {2});
  toy_bodies()["equal"] = [](const ToyCall& c) {
    for (int64_t i = 0; i < c.outputs[0].count(); ++i) {
      c.out<bool>(0)[i] = c.in<int64_t>(0)[i] == *c.in<int64_t>(1);
    }
  };
  const ValueId y = toy.value(DType::boolean, toy.shape(x));
  toy.map("equal", {x, k}, {y});
  toy.output("y", y);
  Executable exe(toy.done(), std::make_shared<ToyDevice>());
  StringTable strings(&exe.constant_strings());
  const Ints ids{strings.id("a"), strings.id("c")}, shape{2};
  KeptOutputs sink(1);
  exe.run(std::vector<Input>{{DType::string, shape, ids.data()}}, sink, &strings);
  check_equal(data_of<bool>(sink.values[0]), std::vector<bool>{true, false});
  check_equal(strings.text(ids[1]), std::string("c"));
  check_equal(strings.id(""), int64_t{0});
}};

}  // namespace
}  // namespace rlx::test
