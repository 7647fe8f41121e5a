// The Contexts of an Executable, those that no run has among them.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "exec/executable.h"

namespace rlx {

struct Executable::Pool {
  struct Entry {
    ~Entry() {
      if (queue) queue->drain();
    }
    std::unique_ptr<Queue> queue;
    std::unique_ptr<Arena> arena;
    std::unique_ptr<Context> context;
    uint64_t random[2] = {};  // the Philox counter; faults that kernels found
  };

  std::mutex mutex;
  std::condition_variable returned;
  std::vector<std::unique_ptr<Entry>> free;
  int made = 0;
  bool paused = false;
};

}  // namespace rlx
