// Any epilogue Region, run by the matrix product on each block of sums while it is in the cache.
#pragma once

#include <memory>

#include "backend.h"
#include "cpu/kernels/gemm.h"
#include "cpu/kernels/gemm_s8.h"
#include "cpu/kernels/region.h"

namespace rlx::cpu {

// Columns of the product are the last axis of the Region's shape, its rows all others. With a
// batch of matrices each of which has some of the columns, `columns` of them, rows repeat.
class GemmTile {
 public:
  // `product` describes the Region's load 0, `extras` the loads after it.
  GemmTile(const Region& region, const SelectRequest& request, const TensorDesc& product,
           std::span<const TensorDesc> extras);

  // What a call must look like when its workspace is asked for.
  static void claim(GemmCall& call);
  static void claim(GemmS8Call& call);

  size_t workspace(int threads) const { return program_.scratch_bytes() * size_t(threads); }

  // Lives while the product runs; `call` then only computes what the Region makes of it.
  class Use {
   public:
    // operands: any pointer, the extras, the outputs. scratch: workspace(threads) bytes.
    template <class Call>
    Use(const GemmTile& tile, Call& call, void* const* operands, void* scratch)
        : Use(tile, call.shape, call.threads, operands, scratch) {
      claim(call);
      context_of(call) = this;
    }
    Use(const Use&) = delete;

   private:
    friend class GemmTile;
    Use(const GemmTile& tile, const params::Gemm& shape, int threads, void* const* operands,
        void* scratch);
    static void*& context_of(GemmCall& call) { return call.epilogue.context; }
    static void*& context_of(GemmS8Call& call) { return call.context; }
    template <class Sum>
    static void apply(void* self, Sum* c, int64_t row, int64_t col, int64_t rows, int64_t cols,
                      int64_t ldc);
    const GemmTile& tile_;
    void* const* outputs_;
    std::byte* scratch_;
    int64_t rows_, columns_;  // of one matrix of the batch, where it has some of the columns
  };

 private:
  RegionProgram program_;
  size_t inputs_;
  std::vector<size_t> items_;  // bytes of an element of each output
  int64_t columns_;
};

}  // namespace rlx::cpu
