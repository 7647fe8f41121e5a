// Normalisation of `rows` rows of `length` values each, which lie in runs of a space.
#pragma once

#include "kernels/params/region.h"

namespace rlx::params {

// Value i of row r is element r / groups * image + r % groups * group + i / run * jump + i % run.
struct Norm {
  Region source, out;
  void* mean = nullptr;
  void* inv_std = nullptr;
  void* kept = nullptr;  // the source's values, when they are an output
  long long rows = 1, length = 1;
  Divisor groups, run;
  long long image = 0, group = 0, jump = 0;
  double epsilon = 0;
};

}  // namespace rlx::params
