// Hashes for keys inside the process: of bytes, and of several values together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rlx {

// Every input bit moves every output bit (the finaliser of splitmix64).
constexpr uint64_t hash_mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Depends on the order in which values are combined.
constexpr uint64_t hash_combine(uint64_t seed, uint64_t value) {
  return hash_mix(seed + 0x9e3779b97f4a7c15u + hash_mix(value));
}

uint64_t hash_bytes(std::span<const std::byte> bytes, uint64_t seed = 0);

// Of a sequence of integers, such as the dims that a plan is kept under.
template <class T>
uint64_t hash_values(std::span<const T> values, uint64_t seed = 0) {
  seed = hash_combine(seed, values.size());
  for (const T& value : values) seed = hash_combine(seed, uint64_t(value));
  return seed;
}

}  // namespace rlx
