// Copies of 8-bit A and B in the layouts that gemm_s8_kernels.h describes.
#pragma once

#include <cstdint>

#include "cpu/kernels/gemm_s8.h"

namespace rlx::cpu {

// Columns [at, at + length) of row `row` of A, less `zero`, as 16-bit numbers.
void s8_read_row(const GemmS8Call& call, const void* a, int64_t a_offset, int64_t row, int64_t at,
                 int64_t length, int32_t zero, int16_t* to);

// All of row `row` of A as unsigned bytes: signed ones plus 128.
void s8_read_bytes(const GemmS8Call& call, int64_t a_offset, int64_t row, uint8_t* to);

// Columns [0, n) of B, [k, n] or with trans [n, k], to panels of `width` columns.
void s8_pack_columns(bool b_signed, const int8_t* b, int64_t ldb, bool trans, int64_t k, int64_t n,
                     int64_t width, int8_t* to);

}  // namespace rlx::cpu
