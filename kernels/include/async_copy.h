// Copies from global to shared memory that go on while the thread does something else.
#pragma once

#include "kernels/include/vector.h"

namespace rlx {

// async_copy<bytes>(to, from, inside) begins to copy 4, 8 or 16 aligned bytes; zeros where not
// `inside`. async_commit() closes a group of copies; async_wait<n>() waits until at most the last
// n groups of this thread are still under way. A barrier then shows them to the other threads.
#if defined(__CUDACC_RTC__)

template <int bytes> RLX_FN void async_copy(void* to, const void* from, bool inside) {
  const unsigned at = unsigned(__cvta_generic_to_shared(to));
  const int size = inside ? bytes : 0;
  if constexpr (bytes == 16) {  // past the first-level cache
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(at), "l"(__cvta_generic_to_global(from)), "r"(size) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 :: "r"(at), "l"(__cvta_generic_to_global(from)), "n"(bytes), "r"(size)
                 : "memory");
  }
}
RLX_FN void async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int groups> RLX_FN void async_wait() {
  asm volatile("cp.async.wait_group %0;" :: "n"(groups) : "memory");
}

#else

// Every copy is made as late as it may be, so that a wait that is missing shows.
struct LateCopies {
  static constexpr int most = 256;  // of a thread, a power of two
  struct Copy {
    void* to;
    const void* from;
    int bytes, group;
  } copies[most];
  unsigned first = 0, last = 0;
  int group = 0;

  static LateCopies& mine() {
    static thread_local LateCopies all[1024];
    return all[threadIdx.x];
  }
  void add(void* to, const void* from, int bytes) {
    if (last - first == most) emu::fail("too many copies under way");
    copies[last++ % most] = {to, from, bytes, group};
  }
  void finish(int open) {
    for (; first != last && copies[first % most].group < group - open; ++first) {
      const Copy& c = copies[first % most];
      if (c.from) copy_bytes(c.to, c.from, c.bytes);
      else __builtin_memset(c.to, 0, static_cast<__SIZE_TYPE__>(c.bytes));
    }
  }
};

template <int bytes> RLX_FN void async_copy(void* to, const void* from, bool inside) {
  LateCopies::mine().add(to, inside ? from : nullptr, bytes);
}
RLX_FN void async_commit() { ++LateCopies::mine().group; }
template <int groups> RLX_FN void async_wait() { LateCopies::mine().finish(groups); }

#endif

// `N` elements, now or later: 2 bytes cannot be copied so.
template <int N, class S> RLX_FN void copy_elements(S* to, const S* from, bool inside) {
  if constexpr (N * int(sizeof(S)) >= 4) {
    async_copy<N * int(sizeof(S))>(to, from, inside);
  } else {
    *to = inside ? *from : S{};
  }
}

}  // namespace rlx
