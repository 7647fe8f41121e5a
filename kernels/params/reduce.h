// A reduction as kept and reduced axes of a space that a generated function reads.
#pragma once

#include "kernels/params/region.h"

namespace rlx::params {

constexpr int reduce_axes = 4;

struct Reduce {
  Region source;
  void* y = nullptr;
  void* parts = nullptr;  // states of each split, when there are several
  long long kept = 1, reduced = 1;
  Divisor kept_extents[reduce_axes] = {}, reduced_extents[reduce_axes] = {};
  long long kept_strides[reduce_axes] = {}, reduced_strides[reduce_axes] = {};
  long long splits = 1, per_split = 1;  // per_split: reduced elements that each split takes
};

}  // namespace rlx::params
