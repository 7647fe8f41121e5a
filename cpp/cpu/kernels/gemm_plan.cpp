// Cuts a product into tasks that fill the team and blocks that fit the caches.
#include "cpu/kernels/gemm_plan.h"

#include <algorithm>

#include "core/cpuid.h"
#include "core/divide.h"

namespace rlx::cpu {
namespace {

// Below this many multiplications waking the team costs more than it saves.
constexpr int64_t inline_work = 128 * 1024;
// No task is made smaller than this to even out the load.
constexpr int64_t least_task = 128 * 1024;
constexpr int64_t tasks_per_thread = 4;

}  // namespace

TaskGrid cut_tasks(const params::Gemm& shape, int threads, bool b_packed, int tile_rows,
                   int tile_cols) {
  TaskGrid grid;
  const int64_t m = shape.m, n = shape.n;
  const int64_t batch = shape.batch[0] * shape.batch[1] * shape.batch[2];
  const int64_t work = batch * m * n * std::max<int64_t>(shape.k, 16);
  threads = std::max(threads, 1);
  int64_t wanted = 1;
  if (threads > 1 && work >= inline_work) {
    const int64_t most = std::max<int64_t>(work / least_task, threads);
    wanted = ceil_div(std::min(threads * tasks_per_thread, most), batch);
  }
  double best = 0;
  for (int64_t rows_cut = 1; rows_cut <= wanted; rows_cut *= 2) {
    const int64_t rows = round_up(ceil_div(m, rows_cut), tile_rows);
    const int64_t cols = round_up(ceil_div(n, ceil_div(wanted, rows_cut)), tile_cols);
    const int64_t tasks = batch * ceil_div(m, rows) * ceil_div(n, cols);
    const double rounds = double(ceil_div(tasks, threads)) * threads;
    // A task reads its rows of A once per columns of B and the other way round; packing B is dear.
    const double reads = 1 + 8.0 / double(cols) + (b_packed ? 8.0 : 24.0) / double(rows);
    const double cost = rounds * double(std::min(rows, m) * std::min(cols, n)) * reads;
    if (rows_cut == 1 || cost < best) {
      best = cost;
      grid.task_rows = rows;
      grid.task_cols = cols;
    }
  }
  grid.row_tasks = ceil_div(m, grid.task_rows);
  grid.col_tasks = ceil_div(n, grid.task_cols);
  grid.tasks = batch * grid.row_tasks * grid.col_tasks;
  return grid;
}

BatchIndex batch_index(const params::Gemm& shape, const TaskGrid& grid, int64_t task) {
  const int64_t item = task / (grid.row_tasks * grid.col_tasks);
  return {item, {item / (shape.batch[1] * shape.batch[2]),
                 item / shape.batch[2] % shape.batch[1], item % shape.batch[2]}};
}

GemmPlan plan_gemm(const GemmCall& call, int tile_rows, int tile_cols, int element) {
  const params::Gemm& shape = call.shape;
  GemmPlan plan{cut_tasks(shape, call.threads, call.b_packed, tile_rows, tile_cols)};
  const int64_t rows = std::min<int64_t>(plan.task_rows, shape.m);
  const int64_t cols = std::min<int64_t>(plan.task_cols, shape.n);
  const bool widened = element == 4;  // the only sums that 16-bit operands have
  const auto narrow = [&](DType type) { return widened && size_of(type) == 2; };

  plan.private_c = !call.store || narrow(call.c_type);
  plan.pack_a = shape.trans_a || call.taps > 0 || narrow(call.a_type);
  const bool lies_ready = !call.b_packed && !narrow(call.b_type);
  const bool plain = lies_ready && !plan.pack_a && !plan.private_c;
  plan.dot = plain && shape.trans_b && shape.m <= 4;
  // Strips of a B beyond the caches would miss a page on every row.
  const bool large = shape.k * cols * element > cpu_info().l2_bytes / 2;
  plan.stream = plain && !shape.trans_b && shape.m <= 4 && large;
  const bool in_place = lies_ready && !shape.trans_b && rows <= 2 * tile_rows && !large;
  plan.pack_b = !call.b_packed && !plan.dot && !plan.stream && !in_place;

  // A panel of B with block_k rows takes half of the first-level cache (block_k = 256 for 32 KiB
  // and 64-byte rows); a block of A takes a quarter of the second-level cache.
  const int64_t panel_row = int64_t{tile_cols} * element;
  const int64_t deep = std::max<int64_t>(cpu_info().l1d_bytes / 2 / panel_row, 64);
  const int64_t k_blocks = std::max<int64_t>(ceil_div(shape.k, deep), 1);
  plan.block_k = rows <= tile_rows ? shape.k : round_up(ceil_div(shape.k, k_blocks), 8);
  const int64_t high = cpu_info().l2_bytes / 4 / std::max<int64_t>(plan.block_k * element, 1);
  const bool watched = call.epilogue.tile || plan.private_c;
  const int64_t tall = watched ? std::min<int64_t>(high, 96) : high;
  plan.block_rows = std::max<int64_t>(tall / tile_rows, 1) * tile_rows;
  plan.block_rows = std::min(plan.block_rows, round_up(rows, tile_rows));

  // What a task packs of B stays in the second-level cache while A passes. Private sums cover
  // block_rows only, so they need all k of some columns at once.
  plan.depth = plan.pack_b && !plan.private_c ? plan.block_k : shape.k;
  int64_t wide = cols;
  if (plan.pack_b) wide = cpu_info().l2_bytes / 2 / std::max<int64_t>(plan.depth * element, 1);
  if (plan.private_c) wide = std::min<int64_t>(wide, 512);
  plan.block_cols = std::clamp<int64_t>(wide, 4 * tile_cols, round_up(cols, tile_cols));
  plan.block_cols = round_up(plan.block_cols, tile_cols);
  plan.group_cols = call.epilogue.tile ? 16 * int64_t{tile_cols} : 4 * int64_t{tile_cols};
  plan.group_cols = std::min(plan.group_cols, plan.block_cols);

  plan.a_ld = plan.block_k + 16;
  plan.c_ld = plan.block_cols;
  if (plan.pack_a) plan.a_bytes = round_up(plan.block_rows * plan.a_ld * element, 64);
  const bool ragged = in_place && shape.n % tile_cols != 0;  // its last panel is packed
  const int64_t packed_cols = plan.pack_b ? plan.block_cols : ragged ? tile_cols : 0;
  plan.b_bytes = round_up(packed_cols * plan.depth * element, 64);
  if (plan.private_c) plan.c_bytes = round_up(plan.block_rows * plan.c_ld * element, 64);
  return plan;
}

GemmCall fold_batch(const GemmCall& call) {
  GemmCall folded = call;
  params::Gemm& shape = folded.shape;
  GemmEpilogue& epilogue = folded.epilogue;
  if (shape.trans_a || call.taps > 0) return folded;
  for (int d = 2; d >= 0; --d) {
    if (shape.batch[d] == 1) continue;
    const bool shared = shape.b_batch[d] == 0 && epilogue.bias_batch[d] == 0;
    if (shape.m == 1) {  // a lone row has no leading dimension yet
      shape.lda = shape.a_batch[d];
      shape.ldc = shape.c_batch[d];
      epilogue.residual_ld = epilogue.residual_batch[d];
    }
    const bool even = shape.a_batch[d] == shape.m * shape.lda &&
                      shape.c_batch[d] == shape.m * shape.ldc &&
                      (!epilogue.add_residual ||
                       epilogue.residual_batch[d] == shape.m * epilogue.residual_ld);
    if (!shared || !even) return folded;
    shape.m *= shape.batch[d];
    shape.batch[d] = 1;
  }
  return folded;
}

}  // namespace rlx::cpu
