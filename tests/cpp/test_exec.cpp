// Runs of one segment: binding, memory, outputs, errors, caches.
#include <thread>

#include "tests/cpp/toy.h"

namespace rlx::test {
namespace {

ProgramPtr chain(int length, std::vector<int64_t> dims = {-1}) {
  Toy toy;
  ValueId x = toy.input("x", dims);
  for (int i = 0; i < length; ++i) x = toy.region({x});
  toy.output("y", x);
  return toy.done();
}

const Test adds{"exec: one step writes the caller's output", [] {
  Toy toy;
  const ValueId a = toy.input("a", {-1}), b = toy.input("b", {-1});
  toy.output("y", toy.region({a, b}));
  Executable exe(toy.done(), std::make_shared<ToyDevice>());
  const auto got = run(exe, {floats({3}, {1, 2, 3}), floats({3}, {10, 20, 30})});
  check_equal(data_of(got[0]), std::vector<float>{12, 23, 34});
  check_equal(exe.counters().arena_bytes.load(), int64_t{0});
}};

const Test new_shapes{"exec: a shape is planned once", [] {
  auto device = std::make_shared<ToyDevice>();
  Executable exe(chain(3), device);
  for (int round = 0; round < 3; ++round) {
    for (int64_t n : {2, 5, 2}) {
      const auto got = run(exe, {floats({n}, std::vector<float>(size_t(n), 4))});
      check_equal(data_of(got[0]), std::vector<float>(size_t(n), 7));
    }
  }
  check_equal(exe.counters().plans.load(), int64_t{2});
  check_equal(device->selections.load(), 6);
  check_equal(exe.counters().contexts.load(), int64_t{1});
}};

const Test runs_in_place{"exec: a chain runs in place, the last step in the output", [] {
  auto device = std::make_shared<ToyDevice>();
  Executable exe(chain(4), device);
  run(exe, {floats({2}, {0, 0})});
  const auto& at = device->addresses;
  check(at[0] == at[1] && at[1] == at[2] && at[2] != at[3]);
  check_equal(exe.counters().arena_bytes.load(), int64_t{64});
}};

const Test least_used_goes{"exec: plans beyond the cap are dropped, the oldest first", [] {
  Executable exe(chain(2), std::make_shared<ToyDevice>(), nullptr, {.plan_bytes = 16 << 10});
  for (int64_t n = 1; n <= 50; ++n) run(exe, {floats({n}, std::vector<float>(size_t(n)))});
  check_equal(exe.counters().plans.load(), int64_t{50});
  check(exe.main().plans->bytes() <= 16 << 10);
  run(exe, {floats({50}, std::vector<float>(50))});
  check_equal(exe.counters().plans.load(), int64_t{50});
  run(exe, {floats({1}, {0})});
  check_equal(exe.counters().plans.load(), int64_t{51});
}};

const Test empties{"exec: empty tensors need no step", [] {
  auto device = std::make_shared<ToyDevice>();
  Executable exe(chain(3), device);
  const auto got = run(exe, {floats({0}, {})});
  check_equal(shape_of(got[0]), std::vector<int64_t>{0});
  check_equal(device->selections.load(), 0);
}};

const Test odd_outputs{"exec: outputs may be inputs, constants, aliases or repeated", [] {
  Toy toy;
  const ValueId x = toy.input("x", {2, 3});
  const ValueId y = toy.region({x});
  const ValueId flat = toy.alias(y, {toy.number(6)});
  const ValueId k = toy.constant<float>(DType::float32, {2}, {8, 9});
  for (ValueId v : {x, y, y, flat, k, toy.alias(x, {toy.number(3), toy.number(2)})}) {
    toy.output("o", v);
  }
  Executable exe(toy.done(), std::make_shared<ToyDevice>());
  const auto got = run(exe, {floats({2, 3}, {1, 2, 3, 4, 5, 6})});
  const std::vector<float> xs{1, 2, 3, 4, 5, 6}, ys{2, 3, 4, 5, 6, 7};
  check_equal(data_of(got[0]), xs);
  check_equal(data_of(got[1]), ys);
  check_equal(data_of(got[2]), ys);
  check_equal(data_of(got[3]), ys);
  check_equal(shape_of(got[3]), std::vector<int64_t>{6});
  check_equal(data_of(got[4]), std::vector<float>{8, 9});
  check_equal(shape_of(got[5]), std::vector<int64_t>{3, 2});
  check_equal(data_of(got[5]), xs);
}};

const Test checks_inputs{"exec: wrong inputs are named", [] {
  Toy toy;
  const ValueId a = toy.input("a", {-1, 4}), b = toy.input("b", {1, 4});
  toy.at(b).shape[0] = toy.shape(a)[0];  // the same symbol
  toy.output("y", toy.region({a, b}));
  Executable exe(toy.done(), std::make_shared<ToyDevice>());
  const Array good = floats({2, 4}, std::vector<float>(8, 1));
  const auto wrong = [&](const Array& a, const Array& b, const std::string& message) {
    check_throws<Error>([&] { run(exe, {a, b}); }, message);
    check_equal(data_of(run(exe, {good, good})[0]), std::vector<float>(8, 3));
  };
  wrong(ints({2, 4}, {}), good, "input 'a': wrong element type");
  wrong(floats({8}, {}), good, "input 'a': wrong shape");
  wrong(floats({2, 3}, {}), good, "input 'a': wrong shape");
  wrong(good, floats({3, 4}, {}), "input 'b': dim 0 does not agree");
}};

const Test guards_hold{"exec: a failed guard names its node and numbers", [] {
  Toy toy;
  const ValueId x = toy.input("x", {-1});
  toy.output("y", toy.region({x}));
  const ExprId condition = toy.apply(ExprOp::lt, toy.shape(x)[0], toy.number(4));
  toy.program.guards.push_back({condition, "at most three", 0, ""});
  Executable exe(toy.done(), std::make_shared<ToyDevice>());
  run(exe, {floats({3}, {1, 2, 3})});
  try {
    run(exe, {floats({4}, {1, 2, 3, 4})});
    check(false, "nothing was thrown");
  } catch (const Error& error) {
    check_equal(std::string(error.what()), std::string("at most three (x.shape[0]=4)"));
    check_equal(error.node, std::string("node0"));
  }
  toy.program.guards[0].assumption = "small";
  Executable other(toy.done(), std::make_shared<ToyDevice>());
  check_throws<Respecialise>([&] { run(other, {floats({4}, {1, 2, 3, 4})}); }, "small");
}};

const Test element_symbols{"exec: elements of an input are numbers of the key", [] {
  toy_bodies()["first"] = [](const ToyCall& c) {
    std::memcpy(c.out<float>(0), c.in<float>(0), c.outputs[0].bytes());
  };
  Toy toy;
  const ValueId x = toy.input("x", {-1}), n = toy.input("n", {1}, DType::int64);
  const ValueId y = toy.value(DType::float32, {toy.element(n, 0)});
  toy.map("first", {x, n}, {y});
  toy.output("y", y);
  Executable exe(toy.done(), std::make_shared<ToyDevice>());
  const Array data = floats({3}, {1, 2, 3});
  check_equal(data_of(run(exe, {data, ints({1}, {2})})[0]), std::vector<float>{1, 2});
  check_equal(data_of(run(exe, {data, ints({1}, {3})})[0]), std::vector<float>{1, 2, 3});
  check_equal(data_of(run(exe, {data, ints({1}, {2})})[0]), std::vector<float>{1, 2});
  check_equal(exe.counters().plans.load(), int64_t{2});
  check_throws<Error>([&] { run(exe, {data, ints({1}, {-2})}); }, "would be -2");
}};

const Test failing_step{"exec: an Error in a step names the node and spares the Context", [] {
  toy_bodies()["fail if 7"] = [](const ToyCall& c) {
    if (c.in<float>(0)[0] == 7) throw Error(ErrorKind::input, "seven");
    *c.out<float>(0) = *c.in<float>(0);
  };
  Toy toy;
  const ValueId x = toy.input("x", {1});
  const ValueId y = toy.value(DType::float32, toy.shape(x));
  toy.map("fail if 7", {x}, {y});
  toy.output("y", y);
  Executable exe(toy.done(), std::make_shared<ToyDevice>());
  for (int round = 0; round < 3; ++round) {
    try {
      run(exe, {floats({1}, {7})});
      check(false, "nothing was thrown");
    } catch (const Error& error) {
      check_equal(error.node, std::string("node0"));
    }
    check_equal(data_of(run(exe, {floats({1}, {5})})[0]), std::vector<float>{5});
  }
  check_equal(exe.counters().contexts.load(), int64_t{1});
}};

const Test memory_check{"exec: memory checks find writes beyond a value and reads of nothing", [] {
  toy_bodies()["overrun"] = [](const ToyCall& c) {
    c.out<float>(0)[c.outputs[0].count()] = 1;
  };
  toy_bodies()["write nothing"] = [](const ToyCall&) {};
  const auto made = [&](const std::string& body) {
    Toy toy;
    const ValueId x = toy.input("x", {4});
    const ValueId y = toy.value(DType::float32, toy.shape(x));
    toy.map(body, {x}, {y});
    toy.output("z", toy.region({y}));
    return toy.done();
  };
  const Array x = floats({4}, {1, 2, 3, 4});
  Executable over(made("overrun"), std::make_shared<ToyDevice>(), nullptr, {.check_memory = true});
  check_throws<Error>([&] { run(over, {x}); }, "wrote beyond");
  Executable nothing(made("write nothing"), std::make_shared<ToyDevice>(), nullptr,
                     {.check_memory = true});
  for (float z : data_of(run(nothing, {x})[0])) check(z != z, "poison was not read");
}};

const Test many_threads{"exec: threads share an Executable and its pool", [] {
  Executable exe(chain(5), std::make_shared<ToyDevice>(), nullptr, {.max_contexts = 3});
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int k = 0; k < 8; ++k) {
    threads.emplace_back([&, k] {
      for (int round = 0; round < 200; ++round) {
        const size_t n = 1 + size_t(k + round) % 7;
        const auto got = run(exe, {floats({int64_t(n)}, std::vector<float>(n, float(k)))});
        if (data_of(got[0]) != std::vector<float>(n, float(k + 5))) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  check_equal(wrong.load(), 0);
  check(exe.counters().contexts.load() <= 3);
}};

const Test workspaces{"exec: each node has its workspace", [] {
  toy_bodies()["via workspace"] = [](const ToyCall& c) {
    auto* work = static_cast<float*>(c.args->workspace);
    check_equal(reinterpret_cast<uintptr_t>(work) % 64, uintptr_t{0});
    std::memcpy(work, c.in<float>(0), c.outputs[0].bytes());
    std::memcpy(c.out<float>(0), work, c.outputs[0].bytes());
  };
  auto device = std::make_shared<ToyDevice>();
  device->workspace = 256;
  Toy toy;
  ValueId x = toy.input("x", {4});
  for (int i = 0; i < 3; ++i) {
    const ValueId y = toy.value(DType::float32, toy.shape(x));
    toy.map("via workspace", {x}, {y});
    x = y;
  }
  toy.output("y", x);
  Executable exe(toy.done(), device, nullptr, {.check_memory = true});
  check_equal(data_of(run(exe, {floats({4}, {1, 2, 3, 4})})[0]), std::vector<float>{1, 2, 3, 4});
}};

}  // namespace
}  // namespace rlx::test
