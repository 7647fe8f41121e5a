// What an Executable counts, for tests and explain(): shared by its children.
#pragma once

#include <atomic>
#include <cstdint>

namespace rlx {

struct Counters {
  std::atomic<int64_t> runs{0};                // of the main program
  std::atomic<int64_t> child_runs{0};          // of subgraphs: branches and iterations
  std::atomic<int64_t> plans{0};               // first-stage binds: new shapes
  std::atomic<int64_t> stage_binds{0};         // binds of all stages
  std::atomic<int64_t> reselections{0};        // nodes selected again within a capacity
  std::atomic<int64_t> host_calls{0};          // Host stages run, each enters Python once
  std::atomic<int64_t> dynamic_allocations{0}; // buffers of stage results and states
  std::atomic<int64_t> state_growths{0};       // state buffers copied into larger ones
  std::atomic<int64_t> recordings{0};          // walks kept for replay (CUDA graphs)
  std::atomic<int64_t> arena_bytes{0};         // the largest arena of one Context
  std::atomic<int64_t> contexts{0};
  std::atomic<int64_t> bind_ns{0};             // without the creation of primitives
  std::atomic<int64_t> creation_ns{0};

  void highest(std::atomic<int64_t>& counter, int64_t value) {
    int64_t seen = counter.load();
    while (seen < value && !counter.compare_exchange_weak(seen, value)) {
    }
  }
};

}  // namespace rlx
