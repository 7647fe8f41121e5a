// Rows of an index tensor that has an index for each element, as GatherElements and
// ScatterElements have: where each row's elements stand in data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>

#include "core/small_vector.h"
#include "cpu/kernels/indices.h"

namespace rlx::cpu {

class ElementRows {
 public:
  // Of indices with `shape` into data with `data_shape`, indexed along `axis`.
  ElementRows(std::span<const int64_t> shape, std::span<const int64_t> data_shape, size_t axis);

  int64_t count() const { return count_; }
  int64_t length() const { return length_; }  // of data along the axis

  // How many parts there are of which no two meet the same element of data.
  int64_t parts() const { return shape_[split_]; }
  // So many of them are worth another thread.
  int64_t grain() const { return 1 + (parts() << 14) / std::max<int64_t>(count_, 1); }

  // For each row of indices in the parts [begin, end), in order: row(i, at, n), where [i, i + n)
  // of the indices go along the last axis and `at` is where they stand in data but for what
  // their own values add.
  template <class Row>
  void each(int64_t begin, int64_t end, Row&& row) const;

  // Whether a row's elements lie beside each other in data when their indices are equal.
  bool across() const { return axis_ + 1 != shape_.size(); }
  int64_t stride() const { return strides_[axis_]; }  // of data along the axis

 private:
  Dims shape_, strides_;  // of indices; of data, axes that run together merged
  size_t axis_ = 0, split_ = 0;
  int64_t length_ = 0, count_ = 1;
};

template <class Row>
void ElementRows::each(int64_t begin, int64_t end, Row&& row) const {
  const size_t last = shape_.size() - 1;
  Dims first(shape_.size(), 0), extent = shape_;
  first[split_] = begin;
  extent[split_] = end - begin;
  int64_t rows = 1;
  for (size_t k = 0; k < last; ++k) rows *= extent[k];
  Dims index = first;
  for (int64_t r = 0; r < rows; ++r) {
    int64_t i = 0, at = 0;
    for (size_t k = 0; k <= last; ++k) {
      i = i * shape_[k] + index[k];
      if (k != axis_) at += index[k] * strides_[k];
    }
    row(i, at, extent[last]);
    for (size_t k = last; k-- > 0;) {
      if (++index[k] < first[k] + extent[k]) break;
      index[k] = first[k];
    }
  }
}

// Whether n > 0 indices from i on are the same.
inline bool all_equal(const Indices& indices, int64_t i, int64_t n) {
  auto same = [&](auto* p) {
    using T = std::remove_cvref_t<decltype(*p)>;
    T differs = 0;
    for (int64_t k = 0; k < n; ++k) differs |= T(p[i + k] ^ p[i]);
    return differs == 0;
  };
  return indices.narrow ? same(static_cast<const int32_t*>(indices.data))
                        : same(static_cast<const int64_t*>(indices.data));
}

}  // namespace rlx::cpu
