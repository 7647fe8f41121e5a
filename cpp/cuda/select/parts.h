// What most select functions share: grids, Regions as parameters, strides of an axis.
#pragma once

#include <algorithm>
#include <functional>

#include "core/divide.h"
#include "cuda/select/region_source.h"
#include "cuda/select/select.h"
#include "cuda/select/types.h"
#include "program/scalar_op.h"

namespace rlx::cuda {

// Blocks in a row that kernels read by block_rank(): more than 2^31 - 1 go on along y.
LaunchShape blocks_of(int64_t blocks, int threads, size_t shared = 0);
// For kernels that walk over `items` in steps of the whole grid, with any number of threads.
LaunchShape walk_of(const Tools& tools, int64_t items, int threads = 256);
// How many threads share a row of `runs` vectors: a warp when there are rows enough to fill the
// card, a block of up to 1024 when rows are few or long.
int row_threads(const Tools& tools, int64_t rows, int64_t runs);

// Sets the Region's parameters and where its pointers come from: source(load index or -1 - result).
template <class Params>
void bind_region(LaunchBuilder<Params>& launch, params::Region& field, const RegionSource& region,
                 const std::function<Source(int)>& source) {
  field = region.params;
  for (size_t k = 0; k < region.operands.size(); ++k) {
    launch.bind(field.operands[k], source(region.operands[k]));
  }
}

// A tensor as outer x length x inner around an axis; dense.
struct AxisView {
  int64_t outer = 1, length = 1, inner = 1;
};
AxisView view_of(const Dims& shape, size_t axis);

// Dims and strides with what lies together merged; extents of 1 dropped.
struct Layout {
  Dims extents;
  std::vector<Dims> strides;  // one for each of those given
};
Layout merged(const Dims& extents, const std::vector<Dims>& strides);

// Below 2^31 in every index that `elements` and its strides reach.
bool narrow_index(int64_t elements);
// The unsigned type that kernels count in.
inline const char* index_name(bool narrow) { return narrow ? "unsigned" : "unsigned long long"; }

// A Region with the numbers that its dims are; for those that select makes itself.
struct OwnRegion {
  Region region;
  std::vector<Number> numbers;

  ExprId number(int64_t value);
  int load(int input, DType type);             // gives the op's place
  int scalar(ScalarOp op, DType type, int a, int b);
  int cast(int from, DType to);
  // An access of an operand of `of` axes, aligned at the last axis of the shape.
  std::vector<AxisMap> aligned(size_t of) const;
};

// A primitive's input as a generated function named "source": its prologue, or the values of x.
struct SourceRegion {
  RegionSource source;
  Dims shape;
  DType type;                    // compute type of the values
  std::vector<size_t> operands;  // of the node, by load index
};
SourceRegion source_region(const RegionPtr& prologue, const SelectRequest& request,
                           std::vector<size_t> operands, int vector_limit = 8);
// Keeps `region` narrower: as if its limit had been this.
int fitting_vector(int vector, int64_t run);

// x as scratch of the run in another type: dense, no constant.
TensorDesc scratch_of(TensorDesc x, DType type);
// Writes x, in whatever strides, as `scratch`, which scratch_of gave.
Selection select_cast(const TensorDesc& x, const TensorDesc& scratch,
                      const SelectRequest& request, const Tools& tools);

Selection one_step(std::string rung, SelectedStep step, size_t workspace = 0);

}  // namespace rlx::cuda
