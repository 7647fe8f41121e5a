// What is taken for granted of GPUs that are not there: NVIDIA's figures for each architecture.
#include <memory>
#include <vector>

#include "cuda/offline.h"
#include "tests/cpp/check.h"

namespace rlx::test {
namespace {

struct Figures {
  int capability, shared_kib, threads;
};

constexpr Figures known[] = {{70, 96, 2048},   {75, 64, 1024},   {80, 163, 2048}, {86, 99, 1536},
                             {87, 163, 1536},  {89, 99, 1536},   {90, 227, 2048},
                             {100, 227, 2048}, {103, 227, 2048}, {120, 99, 1536}, {121, 99, 1536}};

const Test shared{"offline: shared memory and threads by architecture", [] {
  for (const Figures& card : known) {
    const cuda::DeviceInfo info = cuda::make_offline_driver(card.capability)->info();
    check_equal(info.shared_per_block, card.shared_kib << 10);
    check_equal(info.threads_per_multiprocessor, card.threads);
  }
}};

// An arena reserves as many addresses as its GPU has memory; a process has 2^47.
const Test together{"offline: arenas of many GPUs fit into a process", [] {
  std::vector<std::shared_ptr<cuda::Driver>> drivers;
  for (int i = 0; i < 64; ++i) {
    drivers.push_back(cuda::make_offline_driver(90));
    check(drivers.back()->reserve(drivers.back()->info().memory_bytes) != nullptr, "no addresses");
  }
}};

}  // namespace
}  // namespace rlx::test
