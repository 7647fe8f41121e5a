// One thread team of the process for every CPU kernel: loops whose shares idle workers help with.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace rlx::cpu {

// The share of the innermost loop that this thread runs, 0 outside of loops: what scratch memory
// for each share is found by.
int team_share();

// Runs call(body, share) once for each of `shares`, the calling thread included; workers take
// shares as they come. Inside of a share, with one share, and when too many loops are open, all
// are run here in order.
void run_shares(int shares, void (*call)(const void* body, int share), const void* body);

// Runs f(thread, threads) for each thread of [0, threads), not necessarily side by side.
// f must not throw.
template <class F>
void parallel(int threads, F&& f) {
  if (threads <= 1) {
    f(0, 1);
    return;
  }
  const auto body = [&](int share) { f(share, threads); };
  run_shares(threads, [](const void* b, int share) {
    (*static_cast<const decltype(body)*>(b))(share);
  }, &body);
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
  parallel(int(shares), [&](int share, int) {
    f(n * share / shares, n * (share + 1) / shares);
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
  parallel(int(std::min<int64_t>(threads, tasks)), [&](int thread, int) {
    for (int64_t task; (task = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) {
      f(task, thread);
    }
  });
}

}  // namespace rlx::cpu
