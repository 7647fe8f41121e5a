// Whole vectors of floats for the loops of Regions, of the instruction set of the including file.
#pragma once

#include <cstdint>
#include <cstring>

#include "cpu/kernels/region_types.h"

namespace rlx::cpu {
namespace {

constexpr int lanes = vector_bytes / int(sizeof(float));
typedef float Vector __attribute__((vector_size(vector_bytes)));

inline Vector load_vector(const float* p) {
  Vector v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// Fewer than `lanes` floats, the rest 0.
inline Vector load_some(const float* p, int64_t n) {
  Vector v{};
  for (int64_t i = 0; i < n; ++i) v[i] = p[i];
  return v;
}

}  // namespace
}  // namespace rlx::cpu
