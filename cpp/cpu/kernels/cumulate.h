// Cumulate at known dims: running sums and products along one axis.
#pragma once

#include <optional>

#include "cpu/kernels/rows.h"

namespace rlx::cpu {

// Loops of one kind and type; `carry` is a running value in the type that it is kept in.
struct CumulateLoops {
  size_t carry_bytes = 0;
  void (*start)(void* carry, int64_t n) = nullptr;
  // Along a run of the axis, forwards or backwards.
  void (*row)(void* carry, const void* x, void* y, int64_t n) = nullptr;
  // One step of n neighbouring runs.
  void (*column)(void* carry, const void* x, void* y, int64_t n) = nullptr;
};

class CumulateProgram {
 public:
  struct Spec {
    const Cumulate* prim = nullptr;
    std::span<const TensorDesc> inputs;
    std::span<const Number> numbers;
    DType output = DType::none;
    int threads = 1;
  };

  explicit CumulateProgram(const Spec& spec);

  size_t workspace() const { return workspace_; }
  void run(const void* const* inputs, void* out, void* workspace, int threads) const;

 private:
  struct Task;
  void run_rows(Task& task, int64_t outer) const;
  void run_columns(Task& task, int64_t outer, int64_t column, int64_t n) const;
  void* target(Task& task, int64_t at) const;
  void write(Task& task, int64_t at, int64_t n) const;

  CumulateLoops loops_;
  std::optional<RowReader> reader_;
  Loop store_ = nullptr;
  bool reverse_ = false;
  size_t item_ = 0, out_item_ = 0;
  int64_t outer_ = 1, extent_ = 1, inner_ = 1;
  size_t scratch_ = 0, workspace_ = 0;
};

}  // namespace rlx::cpu
