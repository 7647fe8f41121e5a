// Reduce at known dims: which loops run over which rows, and how threads share them.
#pragma once

#include <optional>
#include <utility>

#include "cpu/kernels/reduce_loops.h"
#include "cpu/kernels/rows.h"

namespace rlx::cpu {

class ReduceProgram {
 public:
  struct Spec {
    const Reduce* prim = nullptr;
    std::span<const TensorDesc> inputs;
    std::span<const Number> numbers;
    DType output = DType::none;
    int threads = 1;
  };

  explicit ReduceProgram(const Spec& spec);

  size_t workspace() const { return workspace_; }
  bool splits_reduction() const { return parts_ > 1; }
  void run(const void* const* inputs, void* out, void* workspace, int threads) const;

 private:
  // Axes in memory order, neighbours of one kind merged; the innermost one is a row.
  struct Axis {
    int64_t extent, rows;  // how many rows apart its steps are; 0 for the innermost
  };
  struct Task;

  void find_axes(std::span<const int64_t> shape);
  void lay_out(int threads);
  void reduce_states(Task& task, int64_t first, int64_t n, int64_t begin, int64_t end) const;
  void reduce_rows(Task& task, int64_t row, int64_t state, int64_t begin, int64_t end) const;
  void reduce_short_rows(Task& task, int64_t first, int64_t n) const;
  void reduce_columns(Task& task, int64_t row, int64_t column, int64_t n, int64_t begin,
                      int64_t end) const;
  void finish(Task& task, int64_t first, int64_t n, void* out) const;
  std::pair<int64_t, int64_t> block_at(int64_t block) const;
  Task make_task(const void* const* inputs, std::byte* scratch) const;

  std::vector<int> axes_;
  ReduceLoops loops_;
  std::optional<RowReader> reader_;
  Loop cast_ = nullptr, store_ = nullptr;  // from results to the output
  size_t result_item_ = 0, out_item_ = 0;
  size_t item_ = 0;                   // bytes of a value as it is joined
  bool inner_reduced_ = false;
  bool short_rows_ = false;           // a few values each, that lie one row after the other
  int row_rank_ = 0;
  int64_t inner_ = 1;                 // extent of the innermost axis
  std::vector<Axis> kept_, reduced_;  // outer axes of each kind
  int64_t outputs_ = 1, positions_ = 1;  // results; values that join each
  int64_t block_ = 1, blocks_ = 0;    // results of one task; tasks of one part
  int64_t parts_ = 1;                 // of the reduction, reduced apart and then merged
  int64_t grain_ = 1;
  size_t scratch_ = 0, workspace_ = 0;  // bytes: of a thread, of all
};

}  // namespace rlx::cpu
