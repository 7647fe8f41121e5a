// The workers: they take shares of open loops, spin a little for the next one, then sleep.
//
// A caller never waits for a worker that has not come: where others keep the cores busy a loop
// runs on fewer threads instead of standing still, which a barrier of OpenMP does. It only waits
// for shares that a worker has begun.
#include "cpu/team.h"

#include <pthread.h>
#include <signal.h>

#include <array>
#include <chrono>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rlx::cpu {
namespace {

using Clock = std::chrono::steady_clock;

// How long a thread spins before it sleeps. A wake-up costs the waker 5 us, and the woken comes
// after 50 to 100; most gaps between two loops of a run are shorter.
constexpr std::chrono::microseconds spin_time{60};
constexpr int max_workers = 1023;

thread_local int current_share = 0;
thread_local bool in_loop = false;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

// True once `done` is, within spin_time.
template <class F>
bool spin(F&& done) {
  const auto end = Clock::now() + spin_time;
  do {
    for (int i = 0; i < 32; ++i) {
      if (done()) return true;
      pause();
    }
  } while (Clock::now() < end);
  return false;
}

// A loop that workers may join while it is open. Its fields are read only by those who joined.
struct alignas(64) Loop {
  // 0: free. Else a bit that it is taken, how many workers are inside, and seats left for more.
  static constexpr uint32_t taken = 1, inside = 2, seat = 1 << 16;
  static uint32_t count_inside(uint32_t state) { return (state & (seat - 1)) / inside; }

  std::atomic<uint32_t> state{0};
  std::atomic<int> next{0};
  int shares = 0;
  void (*call)(const void*, int) = nullptr;
  const void* body = nullptr;

  bool take() {
    uint32_t free = 0;
    return state.load(std::memory_order_relaxed) == 0 &&
           state.compare_exchange_strong(free, taken, std::memory_order_acquire);
  }

  void open(int workers) {
    state.store(taken | uint32_t(workers) * seat, std::memory_order_release);
  }

  bool join() {
    uint32_t now = state.load(std::memory_order_relaxed);
    while (now >= seat) {
      if (state.compare_exchange_weak(now, now - seat + inside, std::memory_order_acquire)) {
        return true;
      }
    }
    return false;
  }

  void leave() {
    const uint32_t before = state.fetch_sub(inside, std::memory_order_acq_rel);
    if (before < seat && count_inside(before) == 1) state.notify_all();
  }

  // No more workers come; those inside finish their shares.
  void close() {
    state.fetch_and(seat - 1, std::memory_order_acq_rel);
    const auto empty = [&] {
      return count_inside(state.load(std::memory_order_acquire)) == 0;
    };
    if (!spin(empty)) {
      for (uint32_t now; count_inside(now = state.load(std::memory_order_acquire)) != 0;) {
        state.wait(now, std::memory_order_acquire);
      }
    }
    state.store(0, std::memory_order_release);
  }
};

// Takes shares of the loop until none is left.
void run_some(Loop& loop) {
  const bool outer = std::exchange(in_loop, true);
  const int before = current_share;
  for (int share; (share = loop.next.fetch_add(1, std::memory_order_relaxed)) < loop.shares;) {
    current_share = share;
    loop.call(loop.body, share);
  }
  current_share = before;
  in_loop = outer;
}

class Team {
 public:
  void run(int shares, void (*call)(const void*, int), const void* body) {
    Loop* loop = free_loop();
    if (!loop) return run_here(shares, call, body);
    hire(shares - 1);
    loop->shares = shares;
    loop->call = call;
    loop->body = body;
    loop->next.store(0, std::memory_order_relaxed);
    const int helpers = std::min(shares - 1, workers_.load(std::memory_order_relaxed));
    loop->open(helpers);
    posted_.fetch_add(1);
    for (int k = std::min(helpers, asleep_.load()); k > 0; --k) posted_.notify_one();
    run_some(*loop);
    loop->close();
  }

  static void run_here(int shares, void (*call)(const void*, int), const void* body) {
    const int before = current_share;
    for (int share = 0; share < shares; ++share) {
      current_share = share;
      call(body, share);
    }
    current_share = before;
  }

 private:
  Loop* free_loop() {
    for (Loop& loop : loops_) {
      if (loop.take()) return &loop;
    }
    return nullptr;
  }

  // Sees to it that there are so many workers, or as many as the system grants.
  void hire(int wanted) {
    wanted = std::min(wanted, max_workers);
    if (workers_.load(std::memory_order_acquire) >= wanted) return;
    const std::lock_guard lock(hiring_);
    sigset_t all, before;  // signals are for threads of the program
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      while (workers_.load(std::memory_order_relaxed) < wanted) {
        std::thread([this] { work(); }).detach();
        workers_.fetch_add(1, std::memory_order_release);
      }
    } catch (const std::system_error&) {
      // The loops run on fewer threads.
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  [[noreturn]] void work() {
    in_loop = false;  // a thread's first touch of these allocates: now, not in some later run
    for (;;) {
      const uint32_t seen = posted_.load();
      for (Loop& loop : loops_) {
        while (loop.join()) {
          run_some(loop);
          loop.leave();
        }
      }
      if (spin([&] { return posted_.load(std::memory_order_relaxed) != seen; })) continue;
      asleep_.fetch_add(1);
      posted_.wait(seen);
      asleep_.fetch_sub(1);
    }
  }

  std::array<Loop, 8> loops_;  // of so many callers at once; further ones go without help
  alignas(64) std::atomic<uint32_t> posted_{0};  // counts loops: what workers wait for
  std::atomic<int> asleep_{0}, workers_{0};
  std::mutex hiring_;
};

// Never destroyed: workers may look at it until the process is gone.
std::atomic<Team*> team{new Team};

// The workers of the parent do not exist in a child, which hires its own. Not by comparing
// fork_generation(): here nothing can run before the child's team is there.
const int registered = pthread_atfork(nullptr, nullptr, [] { team.store(new Team); });

}  // namespace

int team_share() { return current_share; }

void run_shares(int shares, void (*call)(const void*, int), const void* body) {
  if (shares <= 1 || in_loop) return Team::run_here(shares, call, body);
  team.load(std::memory_order_relaxed)->run(shares, call, body);
}

}  // namespace rlx::cpu
