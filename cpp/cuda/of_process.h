// What a process has once and never destroys, as threads may still leave it when the process ends.
#pragma once

#include <atomic>

#include "core/fork.h"

namespace rlx::cuda {

// A forked child has its own: the parent's names threads that the child lacks, and one of those may
// have held its locks.
template <class T> T& of_process() {
  struct Made {
    const uint64_t born = fork_generation();
    T value;
  };
  static std::atomic<Made*> made{nullptr};
  Made* found = made;
  while (!found || found->born != fork_generation()) {
    Made* fresh = new Made;
    if (made.compare_exchange_strong(found, fresh)) return fresh->value;
    delete fresh;
  }
  return found->value;
}

}  // namespace rlx::cuda
