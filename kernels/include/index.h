// Index arithmetic of kernels: fast division, the place of a thread in a grid that may be huge.
#pragma once

#include "kernels/include/platform.h"
#include "kernels/include/types.h"
#include "kernels/params/divisor.h"

namespace rlx {

RLX_FN unsigned divide(unsigned n, const params::Divisor& d) {
#if defined(__CUDACC_RTC__)
  const unsigned high = __umulhi(n, d.magic);
#else
  const unsigned high = unsigned((uint64_t(n) * d.magic) >> 32);
#endif
  return (high + n) >> d.shift;  // no carry: n is below 2^31
}
RLX_FN unsigned long long divide(unsigned long long n, const params::Divisor& d) {
  return n / (unsigned long long)(d.value);
}

// n becomes the quotient; the remainder is returned.
template <class Index> RLX_FN Index split(Index& n, const params::Divisor& d) {
  const Index quotient = divide(n, d);
  const Index remainder = n - quotient * Index(d.value);
  n = quotient;
  return remainder;
}
template <class Index> RLX_FN Index remainder(Index n, const params::Divisor& d) {
  return split(n, d);
}

// Elements before an operand of product `batch`; p.batch are the extents of its three axes.
template <class Params>
RLX_FN unsigned long long batch_offset(unsigned long long batch, const Params& p,
                                       const long long* strides) {
  unsigned long long at = 0;
#pragma unroll
  for (int k = 2; k >= 0; --k) at += split(batch, p.batch[k]) * (unsigned long long)(strides[k]);
  return at;
}

// The grid's blocks in one row, whatever limits its axes have.
RLX_FN unsigned long long block_rank() {
  return (unsigned long long)(blockIdx.y) * gridDim.x + blockIdx.x;
}
RLX_FN unsigned long long block_count() { return (unsigned long long)(gridDim.x) * gridDim.y; }
RLX_FN unsigned long long thread_rank() { return block_rank() * blockDim.x + threadIdx.x; }
RLX_FN unsigned long long thread_count() { return block_count() * blockDim.x; }

RLX_FN int lane_id() { return int(threadIdx.x % warp_size); }
RLX_FN int warp_id() { return int(threadIdx.x / warp_size); }

}  // namespace rlx
