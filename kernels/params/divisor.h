// A divisor known before a launch, with what makes dividing by it a multiplication.
#pragma once

namespace rlx::params {

struct Divisor {
  long long value = 1;
  unsigned magic = 0, shift = 0;  // for dividends below 2^31

  Divisor() = default;
#if !defined(__CUDACC_RTC__)
  explicit Divisor(long long d) : value(d) {
    if (d <= 0 || d >= (1ll << 31)) return;
    while ((1ull << shift) < (unsigned long long)(d)) ++shift;
    magic = unsigned(((1ull << 32) * ((1ull << shift) - (unsigned long long)(d))) /
                     (unsigned long long)(d) + 1);
  }
#endif
};

}  // namespace rlx::params
