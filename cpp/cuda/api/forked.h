// CUDA belongs to the process that first used it: a child that is forked from there cannot.
#pragma once

#include <atomic>

#include "core/error.h"
#include "core/fork.h"

namespace rlx::cuda::api {

// Before the driver is called: false where it is the parent's. A child that called it all the same
// might wait for a lock of a thread that it lacks.
inline bool claim_cuda() {
  static std::atomic<uint64_t> owner{0};  // the forks before it, and one
  const uint64_t mine = fork_generation() + 1;
  uint64_t found = 0;
  return owner.compare_exchange_strong(found, mine) || found == mine;
}

inline Error forked_error() {
  Error error(ErrorKind::device, "CUDA cannot be used in a process that was forked");
  error.remedy = "start processes by spawn, or load the model after the fork";
  return error;
}

}  // namespace rlx::cuda::api
