// A draw from the Philox stream.
#pragma once

namespace rlx::params {

struct Random {
  const void* x = nullptr;   // probabilities, or rows of log-probabilities
  void* y = nullptr;
  unsigned long long* counter = nullptr;  // null: seeded, the draw begins at 0
  unsigned long long seed = 0;
  long long count = 0, classes = 0, samples = 1;
  double a = 0, b = 1;
};

}  // namespace rlx::params
