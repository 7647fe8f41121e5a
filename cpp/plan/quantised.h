// The sizes of a product's quantised weights, checked: one rule for the kernels of all devices.
#pragma once

#include "backend.h"

namespace rlx::plan {

// Matrices of n rows of k codes with scales, and perhaps zero points, by tiles of them.
struct QuantisedSizes {
  int64_t matrices = 1, n = 0, k = 0;
  int64_t row_bytes = 0;     // of codes, from one row to the next
  int64_t scale_row = 0;     // scales of a row of tiles
  int64_t scale_matrix = 0;  // scales from one matrix to the next; 0: all have the same
  bool zeros = false, one_zero = false;  // one zero point for all

  int64_t matrix_bytes() const { return n * row_bytes; }
};

// Throws Error(model) where scales or zero points do not cover the weights, or weights their
// operand; Error(unsupported) where they have strides.
QuantisedSizes quantised_sizes(const MatMul& prim, const SelectRequest& request);

}  // namespace rlx::plan
