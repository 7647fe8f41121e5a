// Products by quantised weights and by the weights of each row's group: kernels of our own.
#pragma once

#include "cuda/select/epilogue.h"
#include "kernels/params/matmul_dequant.h"

namespace rlx::cuda {

// What the kernels know of the operand b: quantised, or plain [groups, N, K].
class WeightsOperand {
 public:
  WeightsOperand(const MatMul& prim, const SelectRequest& request);

  params::Quantised params() const { return params_; }
  // Reads its pointers from the node's operands.
  template <class Params>
  void bind(LaunchBuilder<Params>& launch) const {
    params::Quantised& q = launch.params.b;
    q = params_;
    launch.bind(q.codes, Source::operand(1));
    if (quantised_) launch.bind(q.scales, Source::operand(4));
    if (zeros_) launch.bind(q.zeros, Source::operand(3));
  }
  // Codes of at most `most` values that lie aligned; the defines of kernels that read such runs.
  int run(int most) const;
  std::vector<std::string> defines(int run) const;
  int64_t matrices() const { return matrices_; }

 private:
  DType type_;
  std::string scale_type_ = "float", zero_type_ = "signed char";
  params::Quantised params_;
  int64_t matrices_ = 1;
  bool quantised_, zeros_ = false;
};

// Few rows at a time by weights that are read once; with groups, each row by weights of its own.
Selection matmul_few_rows(const MatMul& prim, const SelectRequest& request, const Tools& tools,
                          const WeightsOperand& weights);
// Tiles on tensor cores; with groups, rows are sorted first.
Selection matmul_tiles(const MatMul& prim, const SelectRequest& request, const Tools& tools,
                       const WeightsOperand& weights);
// Weights as floats in memory, then an ordinary product.
Selection matmul_dequantised(const MatMul& prim, const SelectRequest& request, const Tools& tools,
                             const WeightsOperand& weights);

}  // namespace rlx::cuda
