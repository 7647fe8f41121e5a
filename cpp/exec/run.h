// One run of one program in a Context: walks its stages. The stages' own files use it to read
// and define values.
#pragma once

#include <optional>

#include "exec/bind.h"
#include "exec/context.h"
#include "exec/executable.h"

namespace rlx {

class Observer;
class State;

// What a run and the runs of its subgraphs share.
struct RunShared {
  Arena& arena;
  Queue* queue;  // null when steps work on the host's memory
  uint64_t* random;
  int threads;
  StringTable* strings;
  State* state;  // of the main program only
  Observer* observer;  // null unless somebody watches
  bool uploaded = false;  // something, since the queue was last waited for
};

class Runner {
 public:
  // The run's memory begins `base` bytes into the arena.
  Runner(Unit& unit, Context& context, RunShared& shared, size_t base, OutputSink& sink);

  void run(std::span<const Input> inputs);
  // After run() of the main program: raises what the caller's own data made wrong (of device
  // arrays without a State the next wait tells), and only then changes the State.
  void finish();
  // The first half of run(): checks the inputs and finds or makes the first stage's Plan.
  void bind_inputs(std::span<const Input> inputs);

  // --- for the stages ---
  // A tensor as it is now, at its present shape: borrowed memory, or on the host a copy of what
  // the device holds.
  Tensor tensor(ValueId v) const;
  RunValue value(ValueId v) const;
  // The same without a copy, wherever it lies.
  Tensor resident(ValueId v) const;
  RunValue resident_value(ValueId v) const;
  Input as_input(const RunValue& value) const;
  // Inputs of a program with host copies of those on the device whose elements are numbers of it.
  std::vector<Input> readable(const Facts& program, std::span<const Input> inputs,
                              std::vector<Tensor>& copies) const;
  // Memory for a tensor that the present stage makes, on the device or the host: the caller's, if
  // it is an output.
  void* result(ValueId v, const Dims& shape, bool on_device = false);
  // The value of a stage's output; a tensor's memory comes from result(), is owned by it or
  // lives as long as the run.
  void define(ValueId v, RunValue value);
  // Runs the stage's n-th subgraph.
  void run_child(size_t n, std::span<const Input> inputs, OutputSink& sink);
  const Unit& child_unit(size_t n) const;
  Context& child_context(size_t n);
  // To where the tensor lies itself, device or host.
  void copy(void* to, const Tensor& tensor);
  // At least `bytes` of the buffer, on the device or the host, with its first `keep` contents.
  void* reserve(Buffer& buffer, size_t bytes, bool on_device, size_t keep = 0) {
    return buffer.reserve(bytes, counters(), keep, on_device ? shared_.queue : nullptr);
  }
  // What the inputs of the stage's first subgraph from `first` on are given in several runs goes to
  // where it is read, on the host or by nodes; what both read, or none, stays.
  void place(std::span<RunValue> values, size_t first);
  void long_work() { sink_.long_work(); }
  // Throws Error(model) when what a stage found for `v` is not what the program declares.
  void check_type(ValueId v, DType dtype, size_t rank) const;
  Buffer& buffer(ValueId v) { return context_.buffers[size_t(v)]; }
  Counters& counters() { return unit_.shared.counters; }
  StringTable* strings() { return shared_.strings; }
  const Facts& facts() const { return unit_.facts; }
  std::span<const Number> numbers() const;

 private:
  // Whether it is an output that the caller wants where it is made.
  bool belongs(int32_t output, bool on_device) const {
    return output >= 0 && sink_.wants_on_device(size_t(output), on_device) == on_device;
  }
  void enter_state(State& state);
  void check_input(size_t i, const Input& input);
  Number number_of(const Symbol& symbol) const;
  PlanPtr first_plan(std::span<const Input> inputs);
  PlanPtr next_plan();
  void check_made(size_t stage) const;
  PlanPtr bind(size_t stage, Plan* previous, const PlanKey& key, std::vector<Number> symbols);
  void plan_capacities(std::span<const Input> inputs);
  void check_dims(std::span<const Input> inputs, std::span<const Number> numbers) const;
  void run_stage(const Stage& stage);
  void run_segment();
  void run_nodes(PlanState& state);
  void run_on_lanes(PlanState& state);
  void run_node(PlanState& state, size_t t, void* stream);
  // queued.cpp: the same on a device with memory of its own.
  void run_queued(PlanState& state);
  bool stage_values(PlanState& state);
  void settle() const;
  void play(PlanState& state);
  std::unique_ptr<Recording> record(PlanState& state);
  Tensor on_host(Tensor tensor) const;
  void show_node(Observer& observer, size_t t, void* const* operands);
  void reselect(PlanState& state);
  void copy_outputs();
  BindRequest bind_request() const;
  const char* title_of(const Node& node) const;

  Unit& unit_;
  Context& context_;
  RunShared& shared_;
  size_t base_;
  OutputSink& sink_;
  PlanPtr plan_;
  std::vector<int32_t> late_;  // outputs that a stage has made on the other side
};

}  // namespace rlx
