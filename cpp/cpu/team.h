// One thread team for every CPU kernel: thin loops over OpenMP, which oneDNN uses too.
#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace rlx::cpu {

// True in the child of a fork that could not end the team before: parallel regions would hang.
bool team_lost();

// Runs f(thread, count) on each of `count` <= threads team members; inline when threads <= 1.
// The team is always asked for in full: libgomp ends and recreates threads when its size varies.
// f must not throw.
template <class F>
void parallel(int threads, F&& f) {
  if (threads <= 1 || team_lost()) {
    f(0, 1);
    return;
  }
#pragma omp parallel num_threads(threads)
  f(omp_get_thread_num(), omp_get_num_threads());
}

// Runs f(begin, end) over [0, n) in one contiguous share per thread, each of at least `grain`
// items; inline when that leaves one share. Which items go together depends on `threads` only.
template <class F>
void parallel_for(int threads, int64_t n, int64_t grain, F&& f) {
  if (n <= 0) return;
  const int64_t at_most = n / std::max<int64_t>(grain, 1);
  const int64_t shares = std::clamp<int64_t>(at_most, 1, std::max(threads, 1));
  if (shares == 1) {
    f(int64_t{0}, n);
    return;
  }
  parallel(threads, [&](int thread, int count) {
    for (int64_t share = thread; share < shares; share += count) {
      f(n * share / shares, n * (share + 1) / shares);
    }
  });
}

// Runs f(task, thread) for each task of [0, tasks), handed out one by one: for uneven tasks whose
// results do not depend on who runs them. thread < min(threads, tasks).
template <class F>
void parallel_tasks(int threads, int64_t tasks, F&& f) {
  if (threads <= 1 || tasks <= 1) {
    for (int64_t task = 0; task < tasks; ++task) f(task, 0);
    return;
  }
  std::atomic<int64_t> next{0};
  parallel(threads, [&](int thread, int) {
    while (thread < tasks) {
      const int64_t task = next.fetch_add(1, std::memory_order_relaxed);
      if (task >= tasks) return;
      f(task, thread);
    }
  });
}

}  // namespace rlx::cpu
