// The values that a growing past keeps between runs, each in one buffer with room to grow.
//
// A Program names pairs (input, output, axis), see StatePair. Run with a State, such an input need
// not be given and such an output is not returned: both lie in the State's buffer, whose rows
// along the axis are as far apart as its capacity asks. The output's producer then has nothing to
// do for what the input already holds: a Move loses the part that copies the past (it becomes
// an append), a Scatter finds its data in place. Nodes that touch a State are selected for each
// size within a plan, so the axis must depend on a symbol with a capacity.
#pragma once

#include <optional>
#include <vector>

#include "backend.h"
#include "exec/counters.h"
#include "exec/facts.h"
#include "exec/numbers.h"
#include "exec/value.h"

namespace rlx {

// The primitive of a node that writes a state output, without what is already in place; nothing
// for other nodes. Throws Error(unsupported) when the node would rewrite the past.
std::optional<Prim> continue_state(const Facts& facts, const Node& node,
                                   std::span<const Number> numbers);

class State {
 public:
  // For the length of a run; throws Error(input) while another run has it.
  class Use {
   public:
    explicit Use(State& state);
    ~Use() { state_.busy_ = false; }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    State& state_;
  };

  // Of a program with these facts, in the memory of the device; throws Error(input) if it has no
  // state pairs.
  State(const Facts& facts, const Device& device);

  // The inputs with those that the State provides; a given one replaces what the State holds.
  std::vector<Input> complete(std::span<const Input> inputs, Counters& counters);
  // Room for the outputs at the planned dims. Addresses are stable until the next call.
  void reserve(std::span<const Number> planned, Counters& counters);
  // The run succeeded: outputs at these dims are the next run's inputs.
  void commit(std::span<const Number> actual);
  void clear();

  void* data(size_t pair) const { return entries_[pair].memory.get(); }
  std::vector<int64_t> extents() const;  // of each buffer along its axis
  Tensor copy(size_t pair) const;        // what the State holds, dense

 private:
  struct Entry {
    bool filled = false;
    Dims shape;               // as the next run's input
    int64_t extent = 0;       // of the buffer along the axis
    std::shared_ptr<void> memory;
  };
  void resize(size_t pair, const Dims& shape, int64_t extent, Counters& counters);
  void fill(size_t pair, const Input& input, Counters& counters);
  void start_empty(size_t pair, std::span<const Input> inputs, Counters& counters);
  const Value& input_value(size_t pair) const;
  size_t axis(size_t pair) const { return size_t(facts_.program->states[pair].axis); }

  const Facts& facts_;
  const Device& device_;
  std::vector<Entry> entries_;
  std::atomic<bool> busy_{false};
};

}  // namespace rlx
