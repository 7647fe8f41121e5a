// Capacities and States: a growing past is planned once and appended to; forks start afresh.
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "tests/cpp/toy.h"

namespace rlx::test {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

// past[2, P, 1], fresh[2, 1, 1] -> present[2, P + 1, 1] = concat, sums[2] over present, where P
// is planned at the next multiple of 4; other[3] -> twice[3], which does not depend on P.
struct Growing {
  Toy toy;
  Growing() {
    toy_bodies()["sum rows"] = [](const ToyCall& c) {
      const TensorDesc& x = c.inputs[0];
      for (int64_t b = 0; b < x.shape[0]; ++b) {
        float sum = 0;
        for (int64_t t = 0; t < x.shape[1]; ++t) {
          sum += c.in<float>(0)[b * x.strides[0] + t * x.strides[1]];
        }
        c.out<float>(0)[b] = sum;
      }
    };
    const ValueId past = toy.input("past", {2, -1, 1});
    const ValueId fresh = toy.input("fresh", {2, 1, 1}), other = toy.input("other", {3});
    const ExprId length = toy.shape(past)[1], one = toy.number(1), zero = toy.number(0);
    const ExprId four = toy.number(4);
    const ExprId blocks = toy.apply(ExprOp::floordiv, toy.apply(ExprOp::add, length, four), four);
    toy.program.symbols[0].capacity = toy.apply(ExprOp::mul, blocks, four);
    const ExprId longer = toy.apply(ExprOp::add, length, one);
    const ValueId present = toy.value(DType::float32, {toy.number(2), longer, one}, "present");
    Move concat;
    const std::vector<ExprId> starts(3, zero), steps(3, one);
    concat.parts.push_back({0, {0, 1, 2}, starts, steps, toy.shape(past), starts});
    concat.parts.push_back({1, {0, 1, 2}, starts, steps, toy.shape(fresh), {zero, length, zero}});
    toy.node(concat, {past, fresh}, {present});
    const ValueId sums = toy.value(DType::float32, {toy.number(2)});
    toy.map("sum rows", {present}, {sums});
    toy.output("present", present);
    toy.output("sums", sums);
    toy.output("twice", toy.region({toy.region({other})}));
    toy.program.states.push_back({0, 0, 1});
  }
};

const Input from_state{DType::none, {}, nullptr, nullptr, false};

const Test within_capacity{"state: sizes within a capacity need no plan", [] {
  Growing g;
  auto device = std::make_shared<ToyDevice>();
  Executable exe(g.toy.done(), device, nullptr, {.check_memory = true});
  Floats row;
  for (int64_t p = 0; p < 8; ++p) {
    Floats past = row;
    past.insert(past.end(), row.begin(), row.end());
    const auto got = run(exe, {floats({2, p, 1}, past), floats({2, 1, 1}, {float(p), float(p)}),
                               floats({3}, {1, 2, 3})});
    row.push_back(float(p));
    check_equal(shape_of(got[0]), Ints{2, p + 1, 1});
    Floats both = row;
    both.insert(both.end(), row.begin(), row.end());
    check_equal(data_of(got[0]), both);
    check_equal(data_of(got[1]), Floats(2, float(p * (p + 1) / 2)));
    check_equal(data_of(got[2]), Floats{3, 4, 5});
  }
  check_equal(exe.counters().plans.load(), int64_t{2});         // 0..3 and 4..7
  check_equal(exe.counters().reselections.load(), int64_t{16}); // two nodes, eight sizes
}};

const Test appends{"state: the past is appended to and not copied", [] {
  Growing g;
  Executable exe(g.toy.done(), std::make_shared<ToyDevice>(), nullptr, {.check_memory = true});
  State state(exe.main().facts, exe.device());
  float sum = 0;
  const void* buffer = nullptr;
  for (int t = 0; t < 11; ++t) {
    const float x = float(t * t + 1);
    const auto got =
        run(exe, {from_state, floats({2, 1, 1}, {x, -x}), floats({3}, {0, 0, 0})}, &state);
    check(std::get<Tensor>(got[0]).data == nullptr, "a state's output is not returned");
    sum += x;
    check_equal(data_of(got[1]), Floats{sum, -sum});
    if (t == 4 || t == 8) check(state.data(0) != buffer, "the buffer grew");
    if (t == 5) check(state.data(0) == buffer, "the buffer stays within its capacity");
    buffer = state.data(0);
  }
  check_equal(exe.counters().plans.load(), int64_t{3});
  check_equal(exe.counters().state_growths.load(), int64_t{2});
  const Tensor held = state.copy(0);
  check_equal(shape_of(RunValue(held)), Ints{2, 11, 1});
  check_equal(data_of(RunValue(held))[10], 101.0f);
  check_equal(data_of(RunValue(held))[11], -1.0f);
}};

const Test starts_from{"state: a given past replaces what the State holds", [] {
  Growing g;
  Executable exe(g.toy.done(), std::make_shared<ToyDevice>());
  State state(exe.main().facts, exe.device());
  const Array other = floats({3}, {0, 0, 0}), fresh = floats({2, 1, 1}, {1, 2});
  auto got = run(exe, {floats({2, 2, 1}, {10, 20, 30, 40}), fresh, other}, &state);
  check_equal(data_of(got[1]), Floats{31, 72});
  got = run(exe, {from_state, fresh, other}, &state);
  check_equal(data_of(got[1]), Floats{32, 74});
  state.clear();
  got = run(exe, {from_state, fresh, other}, &state);
  check_equal(data_of(got[1]), Floats{1, 2});
  check_equal(data_of(run(exe, {floats({2, 0, 1}, {}), fresh, other})[1]), Floats{1, 2});
}};

const Test refuses{"state: what cannot be appended is refused", [] {
  Growing g;
  auto& move = std::get<Move>(std::get<Segment>(g.toy.program.stages[0]).nodes[0].prim);
  move.parts[0].offsets[1] = move.parts[1].extents[1];  // past behind fresh
  move.parts[1].offsets[1] = move.parts[0].starts[1];
  Executable exe(g.toy.done(), std::make_shared<ToyDevice>());
  State state(exe.main().facts, exe.device());
  check_throws<Error>([&] {
    run(exe, {from_state, floats({2, 1, 1}, {1, 2}), floats({3}, {0, 0, 0})}, &state);
  }, "does not append");
  Growing fixed;
  fixed.toy.program.symbols[0].capacity = -1;
  check_throws<Error>([&] { Executable e(fixed.toy.done(), std::make_shared<ToyDevice>()); },
                      "grows without a capacity");
}};

const Test beyond{"state: an actual size beyond its capacity is an error", [] {
  Growing g;
  g.toy.program.symbols[0].capacity = g.toy.number(2);
  Executable exe(g.toy.done(), std::make_shared<ToyDevice>());
  check_throws<Error>([&] {
    run(exe, {floats({2, 3, 1}, Floats(6)), floats({2, 1, 1}, {1, 2}), floats({3}, {0, 0, 0})});
  }, "larger than its capacity");
}};

// Runs `body` in a forked child and gives its exit code; a child that hangs is ended by SIGALRM.
template <class F>
int exit_code_of_child(const F& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

const Test forks{"fork: a child runs while the parent's threads held every lock", [] {
  struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    bool entered = false, open = false;
  };
  static Gate gate;
  struct SlowDevice final : Device {
    std::string name() const override { return "slow"; }
    int default_threads() const override { return 1; }
    std::unique_ptr<Arena> make_arena() const override { return toy.make_arena(); }
    Selection select(const SelectRequest& request) const override {
      if (request.outputs[0].shape[0] == 5) {  // binding is held up here
        std::unique_lock lock(gate.mutex);
        gate.entered = true;
        gate.changed.notify_all();
        gate.changed.wait(lock, [] { return gate.open; });
      }
      return toy.select(request);
    }
    ToyDevice toy;
  };
  Toy toy;
  const ValueId x = toy.input("x", {-1});
  toy.output("y", toy.region({x}));
  Executable exe(toy.done(), std::make_shared<SlowDevice>());
  run(exe, {floats({2}, {1, 2})});
  std::thread other([&] { run(exe, {floats({5}, Floats(5))}); });
  {
    std::unique_lock lock(gate.mutex);
    gate.changed.wait(lock, [] { return gate.entered; });
  }
  const int code = exit_code_of_child([&] {
    for (int64_t n : {2, 3}) {
      if (data_of(run(exe, {floats({n}, Floats(size_t(n)))})[0]) != Floats(size_t(n), 1)) return 1;
    }
    return exe.counters().plans == 4 ? 0 : 2;  // 2 and 5 by the parent, 2 again and 3 here
  });
  {
    std::lock_guard lock(gate.mutex);
    gate.open = true;
    gate.changed.notify_all();
  }
  other.join();
  check_equal(code, 0);
}};

}  // namespace
}  // namespace rlx::test
