// Window arithmetic of pooling, and the choice of a kernel by instruction set, type and layout.
#include "cpu/kernels/pool.h"

#include <algorithm>

#include "core/cpuid.h"
#include "cpu/kernels/pool_kernels.h"
#include "cpu/team.h"

namespace rlx::cpu {
namespace {

const PoolTable& table() {
#if defined(__x86_64__)
  if (cpu_isa() == Isa::avx512) return pool_table_avx512;
  if (cpu_isa() == Isa::avx2) return pool_table_avx2;
#endif
  return pool_table_portable;
}

const PoolEntry* find(const PoolShape& shape) {
  for (size_t i = 0; i < table().count; ++i) {
    const PoolEntry& entry = table().entries[i];
    if (entry.kind == shape.kind && entry.dtype == shape.dtype) return &entry;
  }
  return nullptr;
}

// Taps t of [0, kernel) with low <= start + t * dilation < high: the first, and how many.
std::pair<int64_t, int64_t> taps_within(const WindowAxis& axis, int64_t start, int64_t low,
                                        int64_t high) {
  const auto at_or_after = [&](int64_t bound) {
    const int64_t gap = bound - start;
    if (gap <= 0) return int64_t{0};
    return std::min(axis.kernel, (gap + axis.dilation - 1) / axis.dilation);
  };
  const int64_t first = at_or_after(low);
  return {first, std::max<int64_t>(at_or_after(high) - first, 0)};
}

bool channels_dense(const PoolShape& s) {
  return s.channels == 1 || (s.x.channel == 1 && s.y.channel == 1);
}

bool rows_dense(const PoolShape& s) { return s.x.space[2] == 1 && s.y.space[2] == 1; }

}  // namespace

std::vector<WindowSpan> window_spans(const WindowAxis& axis, bool count_include_pad) {
  std::vector<WindowSpan> spans;
  for (int64_t o = 0; o < axis.out; ++o) {
    const int64_t start = o * axis.stride - axis.pad_begin;
    const auto [first, taps] = taps_within(axis, start, 0, axis.in);
    const int64_t padded =
        taps_within(axis, start, -axis.pad_begin, axis.in + axis.pad_end).second;
    spans.push_back({start + first * axis.dilation, taps, count_include_pad ? padded : taps});
  }
  return spans;
}

bool pool_has_fast(const PoolShape& shape, bool indices) {
  return !indices && find(shape) && (channels_dense(shape) || rows_dense(shape));
}

void pool_fast(const PoolShape& s, const void* x, void* y, int threads) {
  const PoolEntry& entry = *find(s);
  // With both layouts at hand (one channel, or one pixel a row), the longer run is better.
  const bool planes = rows_dense(s) && (!channels_dense(s) || s.axes[2].out > s.channels);
  const int64_t rows = s.batch * s.axes[0].out * s.axes[1].out * (planes ? s.channels : 1);
  const int64_t work = s.axes[0].kernel * s.axes[1].kernel * s.axes[2].kernel * s.axes[2].out *
                       (planes ? 1 : s.channels);
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(work, 1));
  parallel_for(threads, rows, grain, [&](int64_t begin, int64_t end) {
    (planes ? entry.planes : entry.channels)(s, x, y, begin, end);
  });
}

}  // namespace rlx::cpu
