// Turns channels-first images into channels-last ones and back.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rlx::cpu {

// to[b][j][i] = from[b][i][j] for each of `batch` dense matrices of rows x cols elements of
// `item` bytes (1, 2, 4 or 8).
void transpose_each(int64_t batch, int64_t rows, int64_t cols, size_t item, const void* from,
                    void* to, int threads);

}  // namespace rlx::cpu
