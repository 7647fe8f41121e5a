// The pool of Contexts, and what a forked child does about all that it cannot use.
#include "exec/executable.h"

#include <algorithm>
#include <random>
#include <thread>

#include "core/fork.h"
#include "exec/executable_pool.h"
#include "exec/run.h"
#include "exec/state.h"

namespace rlx {

// A Context for the length of a run.
struct Executable::Lease {
  Lease(Executable& executable, OutputSink& sink) : pool(*executable.pool_) {
    std::unique_lock lock(pool.mutex);
    Shared& shared = executable.shared_;
    const int most = shared.options.max_contexts > 0 ? shared.options.max_contexts
                                                     : std::max(8, 2 * shared.threads);
    const auto ready = [&] {
      return !pool.paused && (!pool.free.empty() || pool.made < most);
    };
    if (!ready()) {
      // The owner of a Context may need what the caller holds before it can give it back.
      lock.unlock();
      sink.long_work();
      lock.lock();
      pool.returned.wait(lock, ready);
    }
    if (!pool.free.empty()) {
      entry = std::move(pool.free.back());
      pool.free.pop_back();
      return;
    }
    const uint64_t number = uint64_t(pool.made++);
    lock.unlock();
    entry = std::make_unique<Pool::Entry>();
    try {
      // Contexts draw from distant parts of the random stream, each process from others.
      entry->random[0] = (number << 48) ^ (uint64_t{std::random_device{}()} << 16);
      entry->queue = shared.device->make_queue(entry->random[0]);
      entry->arena = shared.device->make_arena();
      entry->context = std::make_unique<Context>(executable.main_->facts);
    } catch (...) {
      lock.lock();
      --pool.made;
      pool.returned.notify_all();
      throw;
    }
    ++shared.counters.contexts;
  }

  ~Lease() {
    bool paused;
    {
      std::lock_guard lock(pool.mutex);
      pool.free.push_back(std::move(entry));
      paused = pool.paused;
    }
    paused ? pool.returned.notify_all() : pool.returned.notify_one();
  }

  Pool& pool;
  std::unique_ptr<Pool::Entry> entry;
};

Shared::Shared(std::shared_ptr<const Device> d, std::shared_ptr<Packs> p, ExecOptions o)
    : device(std::move(d)), options(std::move(o)),
      threads(options.threads > 0 ? options.threads : device->default_threads()),
      packs(p ? std::move(p) : std::make_shared<Packs>()) {}

Unit::Unit(ProgramPtr program, Shared& s)
    : shared(s), facts(std::move(program), s.strings),
      plans(std::make_unique<PlanCache>(s.options.plan_bytes)) {
  for (const ProgramPtr& child : facts.children) {
    children.push_back(std::make_unique<Unit>(child, s));
  }
}

void Unit::forget_plans() {
  (void)plans.release();
  plans = std::make_unique<PlanCache>(shared.options.plan_bytes);
  for (auto& child : children) child->forget_plans();
}

Executable::Executable(ProgramPtr program, std::shared_ptr<const Device> device,
                       std::shared_ptr<Packs> packs, ExecOptions options)
    : shared_(std::move(device), std::move(packs), std::move(options)),
      main_(std::make_unique<Unit>(std::move(program), shared_)),
      pool_(std::make_unique<Pool>()), generation_(fork_generation()),
      claimed_(fork_generation()) {}

// In a forked child what would be freed may be locked, or a device's that is the parent's.
Executable::~Executable() { notice_fork(); }

// Locks of plans and contexts may be held by threads that do not exist in a forked child: it
// leaves them behind, unfreed, and starts anew.
void Executable::notice_fork() {
  const uint64_t now = fork_generation();
  if (generation_ == now) return;
  if (claimed_.exchange(now) == now) {  // another thread of this child is at it
    while (generation_ != now) std::this_thread::yield();
    return;
  }
  (void)pool_.release();
  pool_ = std::make_unique<Pool>();
  new std::shared_ptr<Packs>(std::move(shared_.packs));
  shared_.packs = std::make_shared<Packs>();
  main_->forget_plans();
  generation_ = now;
}

void Executable::run(std::span<const Input> inputs, OutputSink& sink, StringTable* strings,
                     State* state, Observer* observer, void* stream) {
  notice_fork();
  std::optional<State::Use> use;
  if (state) use.emplace(*state);
  walk(sink, strings, state, observer, stream, [&inputs](Runner& runner) {
    runner.run(inputs);
    runner.finish();
  });
  ++shared_.counters.runs;
}

// In a Context, on the caller's stream.
void Executable::walk(OutputSink& sink, StringTable* strings, State* state, Observer* observer,
                      void* stream, const std::function<void(Runner&)>& work) {
  const Lease lease(*this, sink);
  const auto& entry = *lease.entry;
  if (entry.queue) entry.queue->use(stream);
  const std::unique_ptr<Queue, decltype([](Queue* queue) { queue->leave(); })> used(
      entry.queue.get());
  RunShared run{*entry.arena, entry.queue.get(), lease.entry->random, shared_.threads, strings,
                state, observer};
  try {
    Runner runner(*main_, *lease.entry->context, run, 0, sink);
    work(runner);
  } catch (...) {
    sink.long_work();
    if (entry.queue) entry.queue->drain();  // what this run got wrong is not the next one's
    throw;
  }
}

void Executable::prepare(std::span<const Input> inputs, void* stream) {
  struct NoSink final : OutputSink {
    void* tensor(size_t, DType, std::span<const int64_t>, bool) override { return nullptr; }
    void value(size_t, RunValue) override {}
  } sink;
  notice_fork();
  walk(sink, nullptr, nullptr, nullptr, stream,
       [&inputs](Runner& runner) { runner.bind_inputs(inputs); });
}

}  // namespace rlx
