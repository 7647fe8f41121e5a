// The values that one iteration of a Loop or Scan hands to the next, in two sets of buffers, on the
// device where it makes them there.
#pragma once

#include <chrono>

#include "exec/run.h"

namespace rlx {

class Carried {
 public:
  // They are inputs of the body from `first_input` on; `outputs` are the stage's values for them,
  // -1 where nobody reads the last one.
  Carried(Runner& runner, std::span<const ValueId> initial, std::span<const ValueId> outputs,
          size_t first_input);

  // Before the first iteration: the initial values where the body reads them. One that it leaves
  // as it is stays there.
  void place() { runner_.place(current_, first_input_); }
  const RunValue& operator[](size_t c) const { return current_[c]; }
  // Where an iteration writes the next value of `c`, or what it is if it is no tensor.
  void* next(size_t c, DType dtype, std::span<const int64_t> shape, bool on_device);
  bool wants_on_device(size_t c, bool made_there) const;
  void next(size_t c, RunValue value) { fresh_[c] = std::move(value); }
  // The iteration is over. A value that the body left as it was stays where it is.
  void advance();
  // Defines the stage's outputs.
  void finish();

 private:
  Runner& runner_;
  std::span<const ValueId> outputs_;
  std::vector<RunValue> current_;
  std::vector<std::optional<RunValue>> fresh_;
  std::vector<bool> moved_;  // no longer the initial value
  const Facts& body_;
  std::vector<Buffer>* handed_;
  size_t first_input_;
  int set_ = 0;
};

// Lets the user interrupt long work; asks no more than once in `interval`.
class Interruptible {
 public:
  explicit Interruptible(std::chrono::milliseconds interval = std::chrono::milliseconds(50))
      : interval_(interval) {}
  void check();

 private:
  using Clock = std::chrono::steady_clock;
  std::chrono::milliseconds interval_;
  Clock::time_point last_ = Clock::now();
};

// The shape that a body's output would have for these inputs; dims that only a run would tell
// are 0. For results of no iterations.
Dims shape_without_running(const Runner& runner, size_t output, std::span<const Input> inputs);

}  // namespace rlx
