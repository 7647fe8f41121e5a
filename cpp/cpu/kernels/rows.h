// Rows of a tensor, or of a prologue's result that is never written to memory as a whole.
#pragma once

#include <vector>

#include "cpu/kernels/region.h"

namespace rlx::cpu {

// The product of shape[from, to).
int64_t extent_of(std::span<const int64_t> shape, size_t from, size_t to);

class RowReader {
 public:
  struct Spec {
    const Region* prologue = nullptr;    // its only result is what is read
    std::span<const TensorDesc> inputs;  // the prologue's, or the tensor
    std::span<const Number> numbers;
    std::span<const int64_t> shape;      // of the rows together
    int row_rank = 0;                    // the axes before this one count rows
    DType type = DType::none;            // to read as; a cast is made where the values differ
  };

  explicit RowReader(const Spec& spec);

  size_t scratch_bytes() const { return program_.empty() ? 0 : program_[0].scratch_bytes(); }
  double cost() const { return program_.empty() ? 0.1 : program_[0].cost(); }
  // Whether read() points into the tensor itself and leaves the buffer alone.
  bool direct() const { return program_.empty(); }

  // Reading by one thread; `scratch` and `inputs` outlive it.
  class Cursor {
   public:
    Cursor(const RowReader& reader, const void* const* inputs, void* scratch);
    // Columns [column, column + n) of a row: in place, or computed into `buffer`.
    const void* read(int64_t row, int64_t column, int64_t n, void* buffer) {
      if (!frame_) return base_ + (row * reader_.columns_ + column) * reader_.item_;
      reader_.program_[0].evaluate(*frame_, row, column, n, &buffer);
      return buffer;
    }

   private:
    const RowReader& reader_;
    const std::byte* base_ = nullptr;
    RegionProgram::Frame* frame_ = nullptr;
  };

 private:
  int64_t columns_ = 0, item_ = 0;
  std::vector<RegionProgram> program_;  // one, or none where rows are read in place
};

}  // namespace rlx::cpu
