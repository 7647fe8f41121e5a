// Exact matrix products of 8-bit integers with zero points, summed in int32 (which wraps around).
//
//   C = (A - a_zero) * (B - b_zero)
// Used like gemm.h: fill in a call, plan gemm_s8_workspace(call) bytes, then run it. Results never
// saturate, whatever the instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/params/gemm.h"

namespace rlx::cpu {

struct GemmS8Call {
  params::Gemm shape;  // alpha must be 1
  bool a_signed = false, b_signed = true;
  bool b_packed = false;  // B comes from gemm_s8_pack_b; shape.b_batch then counts packed bytes
  // As in GemmCall: with taps > 0, `a` is a table of m * taps pointers to runs of k / taps values.
  // Padding must point to zero points.
  long long taps = 0;
  // Zero points have the type of their operand; null: 0. Step 0: one for the matrix; step 1: one
  // per row of A or column of B. The batch stride is that of consecutive matrices.
  const void *a_zero = nullptr, *b_zero = nullptr;
  int a_zero_step = 0, b_zero_step = 0;
  long long a_zero_batch[3] = {0, 0, 0}, b_zero_batch[3] = {0, 0, 0};
  // As in GemmEpilogue, on blocks of final sums.
  void (*tile)(void* context, int32_t* c, int64_t row, int64_t col, int64_t rows, int64_t cols,
               int64_t ldc) = nullptr;
  void* context = nullptr;
  bool store = true;  // false: C is not written, only `tile` sees the sums
  int threads = 1;

  const void* a = nullptr;
  const void* b = nullptr;
  int32_t* c = nullptr;
  void* workspace = nullptr;  // gemm_s8_workspace(call) bytes, 64-byte aligned
};

// The bytes that gemm_s8(call) needs, whatever its pointers.
size_t gemm_s8_workspace(const GemmS8Call& call);

void gemm_s8(const GemmS8Call& call);

// Bytes of packed B.
int64_t gemm_s8_packed_bytes(int64_t k, int64_t n);

// Packs B, stored [k, n] or with trans [n, k], rows ldb apart, for the instruction set in force.
void gemm_s8_pack_b(bool b_signed, const void* b, int64_t ldb, bool trans, int64_t k, int64_t n,
                    void* packed, int threads);

}  // namespace rlx::cpu
