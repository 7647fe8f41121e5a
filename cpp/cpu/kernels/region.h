// A Region compiled for known dims: run tile by tile through vectorised loops over values in L1.
// Immutable; all that changes while running stands in scratch memory that the caller gives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend.h"
#include "cpu/kernels/region_loops.h"
#include "cpu/kernels/region_ops.h"
#include "cpu/kernels/region_space.h"

namespace rlx::cpu {

class RegionProgram {
 public:
  struct Spec {
    const Region* region = nullptr;
    std::span<const Number> numbers;
    std::span<const TensorDesc> inputs;   // one for each load index
    std::span<const TensorDesc> outputs;  // one for each result
    // -1: the whole space by run(). Else by evaluate(): the leading `row_rank` axes of the shape
    // are rows, the others columns, both row-major; outputs then only tell their types.
    int row_rank = -1;
    // With rows: input 0 is not read by its strides but given to evaluate() as a run of values.
    bool given_first = false;
  };

  explicit RegionProgram(const Spec& spec);
  RegionProgram(RegionProgram&&) = default;  // a copy's slots would point into the original

  size_t scratch_bytes() const { return frame_bytes_; }  // for each thread; a multiple of 64
  int64_t count() const { return count_; }
  int steps() const { return int(instructions_.size()); }
  double cost() const { return cost_; }  // a guess at nanoseconds for each element

  // The whole space, on up to `threads` threads; scratch_bytes() for each of them.
  void run(const void* const* inputs, void* const* outputs, void* scratch, int threads) const;

  // Values for use by one thread; begin() once, then evaluate() any number of times.
  struct Frame;
  Frame& begin(void* scratch, const void* const* inputs) const;
  // Columns [column, column + n) of a row into contiguous `outputs`. `first` stands for input 0 if
  // it is given; it may be the same memory as an output of the same element size.
  void evaluate(Frame& frame, int64_t row, int64_t column, int64_t n, void* const* outputs,
                const void* first = nullptr) const;

 private:
  friend class RegionCompiler;

  // One axis of a box as an operand sees it.
  struct BoxAxis {
    int64_t extent;  // of the first axis of a box: ignored, it is what the box has
    int64_t stride;
    int axis;        // of the space, for tables
  };

  struct Operand {
    enum class Kind : uint8_t { direct, copied };
    Kind kind = Kind::direct;
    int number = -1;    // input, output, or -1: the coordinate along an axis
    int slot = -1;
    int item = 0;       // bytes of an element
    bool single = false;  // one element for the whole box
    bool transposed = false;  // a box of two axes, contiguous along the first
    int64_t inner = 1;  // elements of a box for one step along its first axis
    Strided move = nullptr;
    StridedRows move_rows = nullptr;  // of a source
    Access access;
    std::vector<BoxAxis> box;  // copied: outermost first
  };

  struct Instruction {
    Loop loop;
    int dst, a, b, c;
    bool one;  // a single element for the whole box
  };

  struct Pointer {  // of a slot into the frame
    int slot;
    size_t offset;
  };

  void run_tiles(Frame& frame, int64_t begin, int64_t end) const;
  void run_box(Frame& frame, int64_t n) const;
  void place(Frame& frame, const Operand& source, size_t k, int64_t n) const;
  void store(Frame& frame, const Operand& sink, int64_t n) const;
  // Axes that have an index while a box runs.
  int indexed_axes() const {
    const int axes = int(space_.extents.size());
    return box_axis_ < axes ? box_axis_ + 1 : axes;
  }
  void seek(Frame& frame, int64_t position, int first, int last) const;

  Space space_;
  int64_t count_ = 0;
  int box_axis_ = 0;        // a box is a part of this axis and all of those after it
  int64_t box_extent_ = 1;  // how much of it, at most
  int64_t box_inner_ = 1;   // elements for each step along it
  int64_t tiles_ = 0;       // full mode
  bool rows_ = false, given_first_ = false;
  double cost_ = 0;
  std::vector<Operand> sources_, sinks_;
  std::vector<Instruction> instructions_;
  std::vector<Cell> constants_;
  std::vector<void*> slots_;        // as a frame begins: constants are in place
  std::vector<Pointer> pointers_;
  size_t frame_bytes_ = 0;
};

}  // namespace rlx::cpu
