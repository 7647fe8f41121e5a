// Sizes, strides and operands of a generated Region function.
#pragma once

#include "kernels/params/divisor.h"

namespace rlx::params {

constexpr int region_operands = 24, region_axes = 6, region_maps = 6, region_numbers = 8;

// Element `i` of the space has coordinates by `extents`, innermost last; an operand's element is
// the sum of coordinate times stride. An access through a map takes coordinate / div % mod.
struct Region {
  void* operands[region_operands] = {};
  long long strides[region_operands][region_axes] = {};
  Divisor extents[region_axes] = {};
  Divisor map_div[region_maps] = {}, map_mod[region_maps] = {};
  long long map_stride[region_maps] = {};
  unsigned long long numbers[region_numbers] = {};  // bits of an int64 or a double
  long long count = 0;                              // elements of the space
};

}  // namespace rlx::params
