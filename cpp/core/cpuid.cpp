// Asks the CPU for instruction sets and cache sizes.
#include "core/cpuid.h"

#include <algorithm>
#include <atomic>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace rlx {
namespace {

#if defined(__x86_64__)
struct Registers {
  uint32_t a = 0, b = 0, c = 0, d = 0;
};

Registers query(uint32_t leaf, uint32_t subleaf) {
  Registers r;
  __get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d);  // leaves zeros where unknown
  return r;
}

bool bit(uint32_t word, int position) { return (word >> position) & 1; }

// The register sets that the operating system saves on a context switch (XCR0).
uint64_t saved_state() {
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

void detect_isa(CpuInfo& info) {
  const Registers basic = query(1, 0), extended = query(7, 0);
  if (!bit(basic.c, 27)) return;  // no OSXSAVE: vector state is not saved
  const uint64_t saved = saved_state();
  const bool fma = bit(basic.c, 12), f16c = bit(basic.c, 29), avx2 = bit(extended.b, 5);
  if ((saved & 0x6) != 0x6 || !fma || !f16c || !avx2) return;
  info.isa = Isa::avx2;
  const bool f = bit(extended.b, 16), dq = bit(extended.b, 17);
  const bool bw = bit(extended.b, 30), vl = bit(extended.b, 31);
  if ((saved & 0xe6) != 0xe6 || !f || !dq || !bw || !vl) return;
  info.isa = Isa::avx512;
  info.avx512_vnni = bit(extended.c, 11);
}

// Reads the cache list of `leaf` (4 on Intel, 0x8000001d on AMD; both have the same format).
void detect_caches(CpuInfo& info, uint32_t leaf) {
  for (uint32_t i = 0; i < 8; ++i) {
    const Registers r = query(leaf, i);
    const uint32_t type = r.a & 31, level = (r.a >> 5) & 7;
    if (type == 0) return;
    const int64_t ways = (r.b >> 22) + 1, partitions = ((r.b >> 12) & 1023) + 1;
    const int64_t line = (r.b & 4095) + 1, sets = int64_t{r.c} + 1;
    const int64_t bytes = ways * partitions * line * sets;
    const bool holds_data = type == 1 || type == 3;
    if (holds_data && level == 1) info.l1d_bytes = bytes;
    if (holds_data && level == 2) info.l2_bytes = bytes;
  }
}
#endif

CpuInfo detect() {
  CpuInfo info;
#if defined(__x86_64__)
  detect_isa(info);
  detect_caches(info, query(4, 0).a & 31 ? 4u : 0x8000001du);
  // A hypervisor may report nonsense; blocking needs sane figures, not exact ones.
  info.l1d_bytes = std::clamp<int64_t>(info.l1d_bytes, 16 << 10, 256 << 10);
  info.l2_bytes = std::clamp<int64_t>(info.l2_bytes, 128 << 10, 4 << 20);
#endif
  return info;
}

std::atomic<Isa> highest_allowed{Isa::avx512};

}  // namespace

const CpuInfo& cpu_info() {
  static const CpuInfo info = detect();
  return info;
}

Isa cpu_isa() {
  return std::min(cpu_info().isa, highest_allowed.load(std::memory_order_relaxed));
}

bool cpu_has_vnni() { return cpu_isa() == Isa::avx512 && cpu_info().avx512_vnni; }

void limit_cpu_isa(Isa highest) { highest_allowed.store(highest, std::memory_order_relaxed); }

}  // namespace rlx
