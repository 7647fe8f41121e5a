// CUDA's language for g++: threads of a block are fibers, a block runs on one OS thread.
// Force-included before a kernel; runtime.cpp, linked into the same library, is the scheduler.
#pragma once

#include <stdint.h>  // no others: every kernel is compiled with this

#define __global__ __attribute__((visibility("hidden")))
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static thread_local
#define RLX_DYNAMIC_SHARED(name) unsigned char* const name = ::rlx::emu::dynamic_shared()

struct uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

namespace rlx::emu {

struct Index3 {
  unsigned x, y, z;
};
struct Lane {  // what a thread can see of itself
  Index3 thread, block, block_dim, grid_dim;
};
extern thread_local Lane* current;

unsigned char* dynamic_shared();
void block_barrier();
// All lanes of `mask` meet: each gives `bytes` (at most 64) and sees what every lane gave.
struct Gathered {
  alignas(16) unsigned char slot[32][64];
};
const Gathered& warp_gather(unsigned mask, const void* mine, int bytes);
void warp_release(unsigned mask);  // before the slots of warp_gather are written again
[[noreturn]] void fail(const char* what);

inline int lane() {
  const Lane& c = *current;
  return int((c.thread.x + c.block_dim.x * (c.thread.y + c.block_dim.y * c.thread.z)) % 32);
}

// Every lane gives a value and takes that of lane `from`.
template <class T> T exchange(unsigned mask, T value, int from) {
  const Gathered& all = warp_gather(mask, &value, sizeof(T));
  if (!(mask >> from & 1)) fail("a shuffle reads a lane that is not in its mask");
  T result;
  __builtin_memcpy(&result, all.slot[from], sizeof(T));
  warp_release(mask);
  return result;
}

template <class P> void call(void (*kernel)(P), const void* params) {
  kernel(*static_cast<const P*>(params));
}
template <class P> unsigned long params_size(void (*)(P)) { return sizeof(P); }

}  // namespace rlx::emu

#define threadIdx (::rlx::emu::current->thread)
#define blockIdx (::rlx::emu::current->block)
#define blockDim (::rlx::emu::current->block_dim)
#define gridDim (::rlx::emu::current->grid_dim)

inline void __syncthreads() { rlx::emu::block_barrier(); }
inline void __syncwarp(unsigned mask = 0xffffffffu) {
  rlx::emu::warp_gather(mask, nullptr, 0);
  rlx::emu::warp_release(mask);
}
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

template <class T> T __shfl_sync(unsigned mask, T v, int from, int width = 32) {
  const int base = rlx::emu::lane() / width * width;
  return rlx::emu::exchange(mask, v, base + (from & (width - 1)));
}
template <class T> T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32) {
  const int lane = rlx::emu::lane(), from = lane ^ bits;
  return rlx::emu::exchange(mask, v, from / width == lane / width ? from : lane);
}
template <class T> T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32) {
  const int lane = rlx::emu::lane(), from = lane - int(by);
  return rlx::emu::exchange(mask, v, from >= lane / width * width ? from : lane);
}
template <class T> T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32) {
  const int lane = rlx::emu::lane(), from = lane + int(by);
  return rlx::emu::exchange(mask, v, from < (lane / width + 1) * width ? from : lane);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  const int mine = predicate != 0;
  const rlx::emu::Gathered& all = rlx::emu::warp_gather(mask, &mine, sizeof mine);
  unsigned bits = 0;
  for (int k = 0; k < 32; ++k) {
    if (mask >> k & 1 && all.slot[k][0]) bits |= 1u << k;
  }
  rlx::emu::warp_release(mask);
  return bits;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) == mask;
}

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
inline int __ffs(int x) { return __builtin_ffs(x); }

template <class T> T atomicCAS(T* p, T expected, T desired) {
  __atomic_compare_exchange_n(p, &expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return expected;
}
template <class T> T atomicExch(T* p, T x) { return __atomic_exchange_n(p, x, __ATOMIC_SEQ_CST); }
template <class T> T atomicOr(T* p, T x) { return __atomic_fetch_or(p, x, __ATOMIC_SEQ_CST); }
inline int atomicAdd(int* p, int x) { return __atomic_fetch_add(p, x, __ATOMIC_SEQ_CST); }
inline unsigned atomicAdd(unsigned* p, unsigned x) {
  return __atomic_fetch_add(p, x, __ATOMIC_SEQ_CST);
}
inline unsigned long long atomicAdd(unsigned long long* p, unsigned long long x) {
  return __atomic_fetch_add(p, x, __ATOMIC_SEQ_CST);
}
namespace rlx::emu {
template <class T, class U> T add_float(T* p, T x) {
  U* bits = reinterpret_cast<U*>(p);
  U seen = __atomic_load_n(bits, __ATOMIC_SEQ_CST);
  for (;;) {
    T old;
    __builtin_memcpy(&old, &seen, sizeof old);
    const T sum = old + x;
    U wanted;
    __builtin_memcpy(&wanted, &sum, sizeof wanted);
    if (__atomic_compare_exchange_n(bits, &seen, wanted, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST)) {
      return old;
    }
  }
}
}  // namespace rlx::emu
inline float atomicAdd(float* p, float x) { return rlx::emu::add_float<float, unsigned>(p, x); }
inline double atomicAdd(double* p, double x) {
  return rlx::emu::add_float<double, unsigned long>(p, x);
}
