// 8-bit products on bytes: for constant B whose weights are small enough, as most trained ones are.
//
// AVX2 multiplies unsigned by signed bytes and adds the products of two neighbours in 16 bits,
// where they saturate. They cannot while the weights that meet in one 16-bit sum have magnitudes
// of at most 128 together (255 * 128 < 2^15). Packing sees to that: four such sums are added before
// they are widened, so eight weights share 128, or two and four where the weights are larger; what
// is beyond goes to further steps of the same panel. A matrix that would need many of them stays
// in the layout of gemm_s8_kernels.h.
#pragma once

#include <cstdint>

#include "core/divide.h"
#include "cpu/kernels/gemm_s8.h"
#include "cpu/kernels/gemm_s8_kernels.h"

namespace rlx::cpu {

constexpr int64_t s8_depths[] = {16, 8};  // the quicker first

// In front of every packed matrix, which may begin anywhere; 64 bytes, so that panels stay aligned.
struct S8Header {
  int32_t depth = 0;  // of a step when the layout is that of this file
  int32_t unused[15] = {};
};

// A step is 16 or 8 rows of B (its depth) for the columns of a panel: runs of four rows, each
// column's four bytes side by side. Behind a panel's steps lie those of what was too large, then
// their count and the rows at which they start.
struct S8BytesLayout {
  int64_t depth, steps, spare, width, panels;
  S8BytesLayout(int64_t step_depth, int64_t k, int64_t n, int64_t panel_width)
      : depth(step_depth), steps(ceil_div(k, depth)), spare(steps / 8 + 1), width(panel_width),
        panels(ceil_div(n, panel_width)) {}
  int64_t step_bytes() const { return depth * width; }
  int64_t list_at() const { return (steps + spare) * step_bytes(); }
  int64_t panel_bytes() const { return list_at() + round_up((spare + 1) * 4, 64); }
  int64_t sums_bytes() const { return panels * width * 4; }  // of columns, before the panels
  int64_t bytes() const { return sums_bytes() + panels * panel_bytes(); }
};

// Packs B as s8_pack_columns takes it, behind the header. False: too many weights are too large.
bool s8_pack_bytes(bool b_signed, const int8_t* b, int64_t ldb, bool trans, int64_t k, int64_t n,
                   const S8BytesLayout& layout, int8_t* to, int threads);

// One task's part of a product by a matrix in this layout.
struct S8BytesTask {
  const GemmS8Call& call;
  const S8Kernels& kernels;
  const int8_t* b;  // behind the header
  int64_t depth;    // as the header has it
  const char *a_zero, *b_zero;
  int64_t a_offset, item;
  int32_t* c;  // null: sums only pass by
  void* workspace;
  int64_t first_row, end_row, first_col, end_col;
};

int64_t s8_bytes_workspace(const GemmS8Call& call, const S8Kernels& kernels);
void s8_bytes_run(const S8BytesTask& task);

}  // namespace rlx::cpu
