// The thread team: every share runs once, loops of several callers do not mix, none waits for help.
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "cpu/team.h"
#include "tests/cpp/check.h"

namespace rlx::test {
namespace {

const Test once{"team: every share runs once and knows its number", [] {
  for (int threads = 1; threads <= 9; ++threads) {
    for (int round = 0; round < 200; ++round) {
      std::vector<int> runs(size_t(threads), 0);
      std::atomic<bool> numbered{true};
      cpu::parallel(threads, [&](int share, int count) {
        ++runs[size_t(share)];
        if (count != threads) numbered = false;
        if (threads > 1 && cpu::team_share() != share) runs[size_t(share)] = 100;
      });
      check(numbered.load());
      for (int n : runs) check_equal(n, 1);
      check_equal(cpu::team_share(), 0);
    }
  }
}};

const Test ranges{"team: contiguous shares depend on the number of threads only", [] {
  for (int64_t n : {0, 1, 7, 64, 1000}) {
    for (int threads : {1, 2, 3, 8}) {
      std::vector<std::atomic<int>> seen(size_t(n) + 1);
      std::atomic<int> shares{0};
      cpu::parallel_for(threads, n, 10, [&](int64_t begin, int64_t end) {
        ++shares;
        for (int64_t i = begin; i < end; ++i) ++seen[size_t(i)];
      });
      for (int64_t i = 0; i < n; ++i) check_equal(seen[size_t(i)].load(), 1);
      const int64_t expected = n == 0 ? 0 : std::clamp<int64_t>(n / 10, 1, threads);
      check_equal(int64_t(shares.load()), expected);
    }
  }
}};

const Test nested{"team: a loop inside of a share runs there", [] {
  std::atomic<int> sum{0};
  cpu::parallel(3, [&](int, int) {
    cpu::parallel(4, [&](int inner, int) { sum += inner + 1; });
  });
  check_equal(sum.load(), 30);
}};

const Test helped{"team: idle workers come: shares that wait for each other end", [] {
  for (int round = 0; round < 20; ++round) {
    if (round % 5 == 4) usleep(2000);  // so that the workers sleep
    std::atomic<int> met{0};
    cpu::parallel(4, [&](int, int) {
      ++met;
      while (met < 4) std::this_thread::yield();
    });
    check_equal(met.load(), 4);
  }
}};

const Test callers{"team: loops of many callers at once do not mix", [] {
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 12; ++caller) {  // more than the team keeps loops for
    callers.emplace_back([&, caller] {
      for (int round = 0; round < 300; ++round) {
        std::vector<int> values(5, -1);
        cpu::parallel_tasks(3, 5, [&](int64_t task, int thread) {
          values[size_t(task)] = thread < 3 ? caller : -2;
        });
        for (int v : values) wrong += v != caller;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  check_equal(wrong.load(), 0);
}};

}  // namespace
}  // namespace rlx::test
