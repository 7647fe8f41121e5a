// One matrix product as a test case: makes operands, runs it, compares with plain sums.
#pragma once

#include <cstdint>
#include <vector>

#include "core/cpuid.h"
#include "core/dtype.h"
#include "cpu/kernels/gemm.h"

namespace rlx::test {

struct Problem {
  int64_t m = 1, n = 1, k = 1;
  int64_t batch[3] = {1, 1, 1};
  int64_t pad = 0;  // extra elements between rows
  bool trans_a = false, trans_b = false, packed = false;
  int threads = 1;
  double alpha = 1;
  int64_t taps = 0;
  DType a_type = DType::float32, b_type = DType::float32, c_type = DType::float32;
  bool shared_b = false;  // one B for the whole batch
  bool heads = false;     // A and C as [batch0, m, batch2, ...]: rows of a matrix lie apart
  bool residual = false, residual_first = false;
  cpu::Activation activation = cpu::Activation::none;
  bool hook = false, store = true;
};

// Levels this machine can run, portable first.
std::vector<Isa> supported_levels();

// C as numbers, [batch, m, n]; integers as their low 53 bits.
std::vector<double> run_problem(const Problem& problem);

// Fails the test where the result is further from the exact one than its rounding can explain.
void run_and_compare(const Problem& problem);

}  // namespace rlx::test
