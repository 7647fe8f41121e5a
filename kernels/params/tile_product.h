// A product by tiles or by rows: dense or transposed operands, partial sums where k is split.
#pragma once

#include "kernels/params/region.h"

namespace rlx::params {

// What a block of tensor cores takes: m x n results, warp_m x warp_n by each warp; in shared memory
// `stages` slices of both operands, of `slice` bytes along k.
struct TileForm {
  int m, n, warp_m, warp_n, slice, stages;
  bool aligned = true;  // reads 16 bytes at once
};

// A kernel has all of them, so that other sizes compile nothing: for many rows, for some, for few,
// and for rows that are not aligned.
constexpr int tile_form_count = 4, tile_threads = 128;
constexpr TileForm tile_forms[tile_form_count] = {{128, 128, 64, 64, 64, 4},
                                                  {64, 64, 32, 32, 64, 6},
                                                  {16, 64, 16, 16, 64, 12},
                                                  {64, 64, 32, 32, 64, 4, false}};

// Bytes behind each line of a slice, [items of 4 bytes][along k], and floats behind each row of
// results: so that the lanes of a warp meet in different banks.
constexpr int slice_pads[2][2] = {{16, 16}, {32, 16}};
constexpr int result_pad = 8;

// Product b of the batch: element (m, k) of A at a + m * a_row + k * a_column, likewise B (k, n).
struct TileProduct {
  Region out;
  const void* a = nullptr;
  const void* b = nullptr;
  float* partial = nullptr;  // [splits, batches, m, n] where k is split
  long long m = 0, n = 0, k = 0;
  long long a_row = 0, a_column = 0, b_row = 0, b_column = 0;
  long long batches = 1;
  Divisor batch[3];
  long long a_batch[3] = {}, b_batch[3] = {};
  long long k_part = 0;  // of k in each split; a multiple of what a block takes at once
  int splits = 1;
  int form = 0, tile_m = 0, tile_n = 0;  // of tile_forms
  int joins = 0;   // adds the parts that were left in `partial`
  int a_run = 0, b_run = 0;  // bytes that are copied at once where not 16: 4, or an element's
  float alpha = 1;
};

}  // namespace rlx::params
