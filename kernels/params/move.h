// Strided copies between layouts, by the size of an element alone.
#pragma once

#include "kernels/params/divisor.h"

namespace rlx::params {

constexpr int move_axes = 8;

// y[to + sum of i * to_strides] = x[from + sum of i * from_strides]; innermost axis last.
struct Move {
  const void* x = nullptr;
  void* y = nullptr;
  long long count = 0;
  int axes = 1;
  Divisor extents[move_axes] = {};
  long long from_strides[move_axes] = {}, to_strides[move_axes] = {};
};

// y[...] = x at a coordinate that edge, reflect or wrap find along each axis.
struct Extend {
  const void* x = nullptr;
  void* y = nullptr;
  long long count = 0;
  int axes = 1;
  Divisor extents[move_axes] = {};      // of y
  long long begins[move_axes] = {};     // y's place of x's first element
  long long lengths[move_axes] = {};    // of x
  long long strides[move_axes] = {};    // of x
};

// y[i] = value for i < count; no pointer: zero.
struct Fill {
  void* y = nullptr;
  const void* value = nullptr;
  long long count = 0;
};

}  // namespace rlx::params
