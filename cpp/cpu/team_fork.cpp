// Ends the forking thread's team before a fork, so that the child can start one of its own.
//
// libgomp keeps a team for each thread that runs parallel regions. A child has that thread but
// none of its team, and its next region would wait for them for ever.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>

#include "cpu/team.h"

namespace rlx::cpu {
namespace {

std::atomic<bool> lost{false};

// OpenMP 5.0's omp_pause_resource_all; libgomp has it since GCC 9, the manylinux one is older.
using Pause = int (*)(int kind);
constexpr int soft = 1;

Pause pause_call() {
  static const auto found =
      reinterpret_cast<Pause>(dlsym(RTLD_DEFAULT, "omp_pause_resource_all"));
  return found;
}

void before_fork() {
  if (pause_call()) pause_call()(soft);
}

void in_child() {
  if (!pause_call()) lost.store(true, std::memory_order_relaxed);
}

const int registered = pthread_atfork(before_fork, nullptr, in_child);

}  // namespace

bool team_lost() { return lost.load(std::memory_order_relaxed); }

}  // namespace rlx::cpu
