// Norm at known dims: layer and RMS norm over trailing axes, group norm over channel groups.
#pragma once

#include <optional>

#include "cpu/kernels/norm_loops.h"
#include "cpu/kernels/rows.h"

namespace rlx::cpu {

class NormProgram {
 public:
  struct Spec {
    const Norm* prim = nullptr;
    std::span<const TensorDesc> inputs, outputs;
    std::span<const Number> numbers;
    int threads = 1;
  };

  explicit NormProgram(const Spec& spec);

  size_t workspace() const { return workspace_; }
  // operands: inputs, then outputs y, mean, inv_std, x_in as far as there are.
  void run(void* const* operands, void* workspace, int threads) const;

 private:
  template <class T>
  friend class NormRun;

  // Scale or bias as values of the compute type: used in place, or made when a run begins.
  struct Vector {
    int input = -1;
    std::vector<RegionProgram> make;
    size_t offset = 0;  // in the workspace
  };

  void find_rows(std::span<const int64_t> shape);
  void make_programs(const Spec& spec, std::span<const int64_t> shape);
  void make_vector(Vector& vector, const Spec& spec, int input, std::span<const int64_t> shape);
  void lay_out(int threads);
  size_t take(size_t bytes);

  NormKind kind_{};
  double epsilon_ = 0;
  bool wide_ = false, by_channel_ = false;  // wide: in double; by_channel: channels are last
  int axis_ = 0, inputs_ = 0, outputs_ = 0;
  int64_t rows_ = 1, length_ = 1;  // rows normalised each by itself, and their values
  int64_t columns_ = 1;            // values of a row of the reader and of the epilogue
  int64_t images_ = 1, channels_ = 1, groups_ = 1, places_ = 1;  // group norm
  int row_rank_ = 0;

  std::optional<RowReader> reader_;
  std::vector<RegionProgram> epilogue_;
  std::vector<int> reader_inputs_, epilogue_inputs_;  // operands
  Vector scale_, bias_;
  Loop store_ = nullptr, store_input_ = nullptr, store_statistic_ = nullptr;
  DType statistic_ = DType::none;
  size_t item_ = 4, out_item_ = 4, in_item_ = 4;
  bool keeps_input_ = false;

  // Offsets in the workspace, and bytes of the part that each thread has for itself.
  size_t pointers_ = 0, channel_data_ = 0, sums_ = 0, threads_ = 0;
  size_t scratch_ = 0, workspace_ = 0;
  size_t row_bytes_ = 0;  // of a thread: a row that cannot be read in place
  int64_t grain_ = 1;
};

}  // namespace rlx::cpu
