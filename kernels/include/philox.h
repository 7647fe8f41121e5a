// Philox 4x32-10, the counter-based generator of Salmon et al. (SC 2011); host and device.
#pragma once

#if defined(__CUDACC__)
#define RLX_HD __host__ __device__
#else
#include <cmath>
#include <cstdint>
#define RLX_HD
#endif

namespace rlx {

struct PhiloxBlock {
  uint32_t lane[4];
};

RLX_HD inline PhiloxBlock philox(uint64_t seed, uint64_t counter) {
  uint32_t c[4] = {uint32_t(counter), uint32_t(counter >> 32), 0, 0};
  uint32_t k0 = uint32_t(seed), k1 = uint32_t(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t(0xD2511F53u) * c[0], p1 = uint64_t(0xCD9E8D57u) * c[2];
    const uint32_t n0 = uint32_t(p1 >> 32) ^ c[1] ^ k0, n2 = uint32_t(p0 >> 32) ^ c[3] ^ k1;
    c[1] = uint32_t(p1);
    c[3] = uint32_t(p0);
    c[0] = n0;
    c[2] = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c[0], c[1], c[2], c[3]}};
}

// Element i of a draw, in [0, 1): 24 bits, so that a float holds it exactly.
RLX_HD inline double philox_uniform(uint64_t seed, uint64_t offset, uint64_t i) {
  return double(philox(seed, offset + i / 4).lane[i % 4] >> 8) * (1.0 / 16777216.0);
}

// Element i of a draw, standard normal by Box and Muller over pairs of lanes.
RLX_HD inline double philox_normal(uint64_t seed, uint64_t offset, uint64_t i) {
  const PhiloxBlock block = philox(seed, offset + i / 4);
  const int pair = int(i % 4) & ~1;
  const double u = (double(block.lane[pair]) + 0.5) * (1.0 / 4294967296.0);
  const double angle = double(block.lane[pair + 1]) * (6.283185307179586 / 4294967296.0);
  const double radius = sqrt(-2.0 * log(u));
  return i % 2 ? radius * sin(angle) : radius * cos(angle);
}

}  // namespace rlx
