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
  const void* data = nullptr;     // scatter: the updates
  const void* indices = nullptr;
  void* y = nullptr;
  unsigned long long* fault = nullptr;
  long long count = 0;
  int axes = 1, axis = 0;
  long long length = 0;                  // of the replaced axis
  Divisor extents[gather_axes] = {};     // of indices; scatter: without `axis`, see lines
  long long strides[gather_axes] = {};   // of the tensor that is indexed
  long long line = 0, line_step = 0;     // scatter: elements of indices along axis, and their step
  long long line_strides[gather_axes] = {};  // scatter: of indices, for `extents`
};

// Row r of `inner` elements goes to the sum over k < depth of index[r][k] * strides[k].
struct ScatterNd {
  const void* updates = nullptr;
  const void* indices = nullptr;
  void* y = nullptr;
  unsigned long long* fault = nullptr;
  long long rows = 0;
  Divisor inner;
  int depth = 1;
  long long lengths[gather_axes] = {}, strides[gather_axes] = {};
  // Where rows are sorted by their targets: offsets in y, and rows; `padded` of each.
  unsigned long long* keys = nullptr;
  long long* places = nullptr;
  long long padded = 0;
};

}  // namespace rlx::params
