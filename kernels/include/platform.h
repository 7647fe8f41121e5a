// What kernels need of their compiler: integer names, and where the emulator differs from CUDA.
#pragma once

#if defined(__CUDACC_RTC__)
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
// Dynamic shared memory, aligned for any element.
#define RLX_DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
#endif

namespace rlx {

// Bytes of one object as another; both compilers make moves between registers of it.
#if defined(__CUDACC_RTC__)
static __device__ __forceinline__ void copy_bytes(void* to, const void* from, int n) {
  memcpy(to, from, size_t(n));
}
#else
[[maybe_unused, gnu::always_inline]] static inline void copy_bytes(void* to, const void* from,
                                                                   int n) {
  __builtin_memcpy(to, from, static_cast<__SIZE_TYPE__>(n));
}
#endif

constexpr int warp_size = 32;
constexpr unsigned all_lanes = 0xffffffffu;

}  // namespace rlx
