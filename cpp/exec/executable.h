// A Program ready to run on a Device: binds new shapes, keeps their Plans, lends Contexts to runs.
#pragma once

#include <condition_variable>
#include <mutex>

#include "exec/context.h"
#include "exec/packs.h"
#include "exec/plan_cache.h"

namespace rlx {

class Observer;
class Runner;
class State;

struct ExecOptions {
  int threads = 0;                            // 0: what the device thinks best
  size_t plan_bytes = size_t{256} << 20;      // cap of cached Plans, of each program
  int max_contexts = 0;                       // runs at the same time; 0: enough for the cores
  size_t memory_limit = SIZE_MAX;             // of one arena; a larger plan is an Error
  bool check_memory = false;                  // poison and canaries around every value
  bool record = true;                         // replay repeated work, where the device can
  bool stepwise = false;                      // wait for each step, so that its node is named
  int lanes = 1;                              // streams of a run, where the device has them
  std::string force = {};                     // a rung to insist on
};

// What a program and its subgraphs share.
struct Shared {
  Shared(std::shared_ptr<const Device> device, std::shared_ptr<Packs> packs, ExecOptions options);

  std::shared_ptr<const Device> device;
  const ExecOptions options;
  const int threads;
  Counters counters;
  StringTable strings;  // of constants
  std::shared_ptr<Packs> packs;
};

// One program with its Plans, and the same for each of its subgraphs.
class Unit {
 public:
  Unit(ProgramPtr program, Shared& shared);

  Shared& shared;
  Facts facts;
  std::unique_ptr<PlanCache> plans;
  std::vector<std::unique_ptr<Unit>> children;  // as Facts::children

  // Takes the bytes of constants that differ from a program of the same form.
  void replace_constants(const Program& now);
  void forget_plans();  // of a process that this one was forked from
};

class Executable {
  struct Pool;

 public:
  // `packs` may be shared with other Executables; null: its own.
  Executable(ProgramPtr program, std::shared_ptr<const Device> device,
             std::shared_ptr<Packs> packs = nullptr, ExecOptions options = {});
  ~Executable();

  // Inputs in the program's order; `strings` (needed by programs with strings) holds the ids of
  // string inputs and gets those of outputs. Throws Error, Respecialise, or what a hook throws;
  // the Executable stays usable.
  // `stream`: the caller's, of a device with Queues; null: one of the Context's own.
  void run(std::span<const Input> inputs, OutputSink& sink, StringTable* strings = nullptr,
           State* state = nullptr, Observer* observer = nullptr, void* stream = nullptr);

  // Binds the first stage for such inputs without running it; symbols that are elements need data,
  // which is there for `stream`.
  void prepare(std::span<const Input> inputs, void* stream = nullptr);

  // Whether the program differs from this one in the bytes of constants only, and these may be
  // replaced: no other Session reads the device's copies.
  bool can_update(const Program& now) const;
  // Replaces them; plans and recordings stay. For an Executable that is paused.
  void update(const Program& now);

  // While it lives no run is going on, and new ones wait.
  class Pause {
   public:
    explicit Pause(Executable& executable);
    ~Pause();
    Pause(const Pause&) = delete;

   private:
    Pool& pool_;
  };

  const Unit& main() const { return *main_; }
  const Device& device() const { return *shared_.device; }
  const Counters& counters() const { return shared_.counters; }
  const StringTable& constant_strings() const { return shared_.strings; }
  const Packs& packs() const { return *shared_.packs; }

 private:
  struct Lease;
  void notice_fork();
  void walk(OutputSink& sink, StringTable* strings, State* state, Observer* observer, void* stream,
            const std::function<void(Runner&)>& work);

  Shared shared_;
  std::unique_ptr<Unit> main_;
  std::unique_ptr<Pool> pool_;
  std::atomic<uint64_t> generation_, claimed_;  // forks noticed, and being dealt with
};

}  // namespace rlx
