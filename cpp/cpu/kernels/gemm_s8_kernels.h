// What each instruction set contributes to 8-bit matrix products.
//
// A is widened to 16 bits with its zero point taken off. B stays at 8 bits, signed, in panels of
// `cols` columns with two rows of B side by side: panel[k / 2][col][k % 2]. A pair of 16-bit
// products is added in 32 bits at once (the instruction on bytes would saturate between them).
#pragma once

#include <cstdint>

namespace rlx::cpu {

struct S8Block {
  const int16_t* a = nullptr;  // row-major, rows a_ld apart
  int64_t a_ld = 0;
  const int8_t* b = nullptr;
  int64_t b_panel = 0;  // from one panel to the next
  int32_t* c = nullptr;
  int64_t ldc = 0, rows = 0, cols = 0;
  int64_t pairs = 0;        // of k
  bool accumulate = false;  // add to c rather than start from zero
};

struct S8Panel;

// Unsigned bytes of A by panels as gemm_s8_panels.h lays them out.
struct S8BytesBlock {
  const uint8_t* a = nullptr;  // rows a_ld apart, each a whole number of steps
  int64_t a_ld = 0;
  const int8_t* b = nullptr;
  const S8Panel* panels = nullptr;  // their table
  const int8_t* rest = nullptr;     // what their places of further steps count from
  int64_t steps = 0, depth = 0;
  int32_t* c = nullptr;
  int64_t ldc = 0, rows = 0, cols = 0;
};

struct S8Kernels {
  int rows, cols;  // of the register tile; cols is the panel width
  void (*multiply)(const S8Block& block);
  void (*multiply_bytes)(const S8BytesBlock& block);  // null: there is none
};

extern const S8Kernels s8_kernels_portable, s8_kernels_avx2, s8_kernels_avx512, s8_kernels_vnni;

}  // namespace rlx::cpu
