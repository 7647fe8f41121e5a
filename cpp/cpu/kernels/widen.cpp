// Shares of the Region interpreter's conversions.
#include "cpu/kernels/widen.h"

#include <cstddef>

#include "cpu/kernels/region_loops.h"
#include "cpu/team.h"

namespace rlx::cpu {
namespace {

constexpr int64_t grain = 1 << 14, item = 2;

}  // namespace

void widen(DType type, const void* from, float* to, int64_t count, int threads) {
  const Loop load = load_loop(type);
  parallel_for(threads, count, grain, [&](int64_t begin, int64_t end) {
    load(to + begin, static_cast<const std::byte*>(from) + begin * item, nullptr, nullptr,
         end - begin);
  });
}

void narrow(DType type, const float* from, void* to, int64_t count, int threads) {
  const Loop store = store_loop(type, {false, CastMode::Round::down});
  parallel_for(threads, count, grain, [&](int64_t begin, int64_t end) {
    store(static_cast<std::byte*>(to) + begin * item, from + begin, nullptr, nullptr, end - begin);
  });
}

}  // namespace rlx::cpu
