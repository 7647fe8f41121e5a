// How one product is cut into tasks and cache blocks; a pure function of the call.
#pragma once

#include <cstdint>

#include "cpu/kernels/gemm.h"

namespace rlx::cpu {

// One task is task_rows x task_cols of one matrix of the batch.
struct TaskGrid {
  int64_t task_rows = 0, task_cols = 0, row_tasks = 0, col_tasks = 0, tasks = 0;
};

// Enough tasks for the team, each as square as possible. tile_rows and tile_cols: the register tile
// of the kernel in use.
TaskGrid cut_tasks(const params::Gemm& shape, int threads, bool b_packed, int tile_rows,
                   int tile_cols);

// The matrix of the batch that a task belongs to: its index along each axis of the batch.
struct BatchIndex {
  int64_t item = 0;
  int64_t index[3] = {0, 0, 0};
  int64_t offset(const long long (&stride)[3]) const {
    return stride[0] * index[0] + stride[1] * index[1] + stride[2] * index[2];
  }
};

BatchIndex batch_index(const params::Gemm& shape, const TaskGrid& grid, int64_t task);

struct GemmPlan : TaskGrid {
  // Inside a task: block_k of A at a time by block_rows, over block_cols of B. A finished piece
  // of C of block_rows x group_cols goes to the epilogue at once.
  int64_t block_rows = 0, block_cols = 0, block_k = 0, group_cols = 0;
  int64_t depth = 0;  // rows of B packed at a time
  bool pack_a = false;     // A is gathered or converted block by block
  bool pack_b = false;     // B is packed by each task for itself
  // Few rows by a B that is read as it lies, once: stored [n, k] (dot) or [k, n] (stream).
  bool dot = false, stream = false;
  bool private_c = false;  // sums stay in the workspace until they are final
  // Leading dimensions and bytes of one thread's buffers.
  int64_t a_ld = 0, c_ld = 0;
  int64_t a_bytes = 0, b_bytes = 0, c_bytes = 0;

  int64_t bytes_per_thread() const { return a_bytes + b_bytes + c_bytes; }
};

// element: bytes of a sum.
GemmPlan plan_gemm(const GemmCall& call, int tile_rows, int tile_cols, int element);

// The same product with as much of the batch as possible seen as rows of A.
GemmCall fold_batch(const GemmCall& call);

}  // namespace rlx::cpu
