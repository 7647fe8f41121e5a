// 8-bit products on bytes: for constant B whose weights are small enough, as most trained ones are.
//
// AVX2 multiplies unsigned by signed bytes and adds the products of two neighbours in 16 bits,
// where they saturate. They cannot while of the weights that meet in one 16-bit sum the positive
// ones add up to at most 128, and so do the negative ones (255 * 128 < 2^15). Packing sees to
// that: four such sums are added before they are widened, so eight weights share 128, or two and
// four where the weights are larger; what is beyond goes to further steps of the same columns. A
// matrix that would need many of them stays in the layout of gemm_s8_kernels.h.
#pragma once

#include <cstdint>

#include "cpu/kernels/gemm_s8.h"
#include "cpu/kernels/gemm_s8_kernels.h"

namespace rlx::cpu {

// In front of every packed matrix, which may begin anywhere; 64 bytes, so that panels stay aligned.
struct S8Header {
  int32_t depth = 0;  // of a step when the layout is that of this file
  int32_t shift = 0;  // what was taken off each number of B
  int32_t unused[14] = {};
};

// At most so many bytes hold a [k, n] matrix in this layout, or it stays in the other one.
int64_t s8_bytes_bound(int64_t k, int64_t n);

// Packs B as s8_pack_columns takes it, at `to` behind the header, which it fills in. False: too
// many weights are too large.
bool s8_pack_bytes(bool b_signed, const int8_t* b, int64_t ldb, bool trans, int64_t k, int64_t n,
                   S8Header& header, int8_t* to, int threads);

// One task's part of a product by a matrix in this layout.
struct S8BytesTask {
  const GemmS8Call& call;
  const S8Kernels& kernels;
  const S8Header& header;
  const char *a_zero, *b_zero;
  int64_t a_offset, item;
  int32_t* c;  // null: sums only pass by
  void* workspace;
  int64_t first_row, end_row, first_col, end_col;
};

int64_t s8_bytes_workspace(const GemmS8Call& call, const S8Kernels& kernels);
void s8_bytes_run(const S8BytesTask& task);

}  // namespace rlx::cpu
