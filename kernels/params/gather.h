// Gathers and scatters: where each element comes from or goes to by an index tensor.
#pragma once

#include "kernels/params/divisor.h"

namespace rlx::params {

constexpr int gather_axes = 8;

// y row r, of `inner` words: group r / per_group, place r % per_group. The indexed element begins
// at group * group_stride + sum over k < depth of index[k] * strides[k].
struct Gather {
  const void* data = nullptr;
  const void* indices = nullptr;
  void* y = nullptr;
  unsigned long long* fault = nullptr;
  long long rows = 0;
  Divisor inner, per_group;
  long long group_stride = 0;
  bool indices_by_place = false;  // the same indices for each group
  int depth = 1;
  long long lengths[gather_axes] = {}, strides[gather_axes] = {};
};

// Over the elements of indices (`extents`): the coordinate along `axis` is replaced by the index.
struct Elements {
  const void* data = nullptr;
  const void* indices = nullptr;
  void* y = nullptr;
  unsigned long long* fault = nullptr;
  long long count = 0;
  int axes = 1, axis = 0;
  long long length = 0;  // of the replaced axis
  Divisor extents[gather_axes] = {};
  long long strides[gather_axes] = {};  // of data
};

// Lines of rows of `inner` elements. A line's coordinates c_k in `extents`, the innermost first,
// say which row of updates and indices is its first, sum c_k * line_rows[k], and where it begins
// in y, sum c_k * line_strides[k]; its rows are `row_step` apart. From there a row goes to the sum
// over k < depth of index[row][k] * strides[k]. ScatterND: one line; ScatterElements: rows of one.
struct Scatter {
  const void* updates = nullptr;
  const void* indices = nullptr;
  void* y = nullptr;
  unsigned long long* fault = nullptr;
  long long lines = 1, rows = 0, row_step = 1;
  Divisor inner{};
  int axes = 0, depth = 1;
  Divisor extents[gather_axes] = {};
  long long line_rows[gather_axes] = {}, line_strides[gather_axes] = {};
  long long lengths[gather_axes] = {}, strides[gather_axes] = {};
  // Lines from `first` on whose rows are sorted by target: `padded` offsets in y and row numbers
  // for each.
  unsigned long long* keys = nullptr;
  long long* places = nullptr;
  long long first = 0, padded = 0;
};

}  // namespace rlx::params
