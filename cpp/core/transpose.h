// Columns of a matrix as rows: weights in the form that products on a GPU prefer.
#pragma once

#include <cstdint>

namespace rlx {

// Elements of 4 bytes, at any address: to[c, r] = from[r, first + c] for c < count, from being
// [rows, cols] and to [count, rows].
void transpose_columns(const void* from, int64_t rows, int64_t cols, int64_t first, int64_t count,
                       void* to);

}  // namespace rlx
