// Softmax at known dims: rows along the axis, or neighbouring runs side by side.
#pragma once

#include <optional>

#include "cpu/kernels/rows.h"
#include "cpu/kernels/softmax_loops.h"

namespace rlx::cpu {

class SoftmaxProgram {
 public:
  struct Spec {
    const Softmax* prim = nullptr;
    std::span<const TensorDesc> inputs;
    std::span<const Number> numbers;
    DType output = DType::none;
    int threads = 1;
  };

  explicit SoftmaxProgram(const Spec& spec);

  size_t workspace() const { return workspace_; }
  void run(const void* const* inputs, void* out, void* workspace, int threads) const;

 private:
  template <class T>
  void run_as(const void* const* inputs, void* out, void* workspace, int threads) const;
  template <class T>
  struct Task;
  template <class T>
  void run_row(Task<T>& task, int64_t outer) const;
  template <class T>
  void run_columns(Task<T>& task, int64_t outer, int64_t column, int64_t n) const;

  std::optional<RowReader> reader_;
  Loop store_ = nullptr;
  bool log_ = false, wide_ = false;  // wide: in double
  size_t item_ = 4, out_item_ = 4;
  int64_t outer_ = 1, extent_ = 1, inner_ = 1;
  int64_t block_ = 1;  // runs side by side
  size_t scratch_ = 0, workspace_ = 0;
  int64_t grain_ = 1;
};

}  // namespace rlx::cpu
