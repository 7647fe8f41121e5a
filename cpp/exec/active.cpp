// A process-wide count; a forked child starts from zero.
#include "exec/active.h"

#include <atomic>
#include <cstdint>

#include "core/fork.h"

namespace rlx {
namespace {

std::atomic<int> active{0};
std::atomic<uint64_t> generation{0};

}  // namespace

ActiveRun::ActiveRun(int all_threads) {
  uint64_t seen = generation.load();
  if (seen != fork_generation() && generation.compare_exchange_strong(seen, fork_generation())) {
    active = 0;  // runs of the parent's other threads do not exist here
  }
  const int runs = ++active;
  threads_ = all_threads;
  // Halves, so that few Plans exist: the count is part of their key.
  for (int shares = 1; shares < runs && threads_ > 1; shares *= 2) threads_ /= 2;
}

ActiveRun::~ActiveRun() { --active; }

}  // namespace rlx
