// A forked child runs kernels on more than one thread, old primitives and new ones.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "cpu/team.h"
#include "tests/cpp/select_harness.h"

namespace rlx::test {
namespace {

PrimRun convolve(int threads) {
  Numbers numbers;
  Conv prim;
  prim.strides = prim.dilations = {1, 1};
  for (int k = 0; k < 2; ++k) prim.pads_begin.push_back(numbers(1));
  prim.pads_end = prim.pads_begin;
  prim.channels_last = true;
  const std::vector<float> x(40 * 40 * 16, 1.0f), w(16 * 16 * 9, 1.0f);
  return run_prim(prim,
                  {tensor<float>(DType::float32, {1, 40, 40, 16}, x),
                   tensor<float>(DType::float32, {16, 16, 3, 3}, w, true), absent(), absent()},
                  {{DType::float32, {1, 40, 40, 16}, {}, false}}, numbers, threads);
}

const Test child{"fork: a child computes with threads after its parent did", [] {
  const PrimRun before = convolve(2);
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(20);  // a hang ends the child by a signal
    // Two shares that wait for each other need two threads.
    std::atomic<int> met{0};
    cpu::parallel(2, [&](int, int) {
      ++met;
      while (met < 2) {}
    });
    const bool same = convolve(2).outputs[0].bytes == before.outputs[0].bytes;
    _exit(same ? 0 : 1);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  check_equal(status, 0);
  check(convolve(2).outputs[0].bytes == before.outputs[0].bytes);
}};

}  // namespace
}  // namespace rlx::test
