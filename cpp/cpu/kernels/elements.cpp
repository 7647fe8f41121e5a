// Merges the axes of data that an element's own index leaves alone.
#include "cpu/kernels/elements.h"

namespace rlx::cpu {

ElementRows::ElementRows(std::span<const int64_t> shape, std::span<const int64_t> data_shape,
                         size_t axis) {
  length_ = data_shape[axis];
  int64_t stride = 1;
  Dims extents, strides;  // innermost first
  bool merges = false;    // the next axis outwards continues the last one pushed
  for (size_t k = shape.size(); k-- > 0;) {
    count_ *= shape[k];
    if (k == axis) axis_ = extents.size();
    if (merges && k != axis) {
      extents.back() *= shape[k];
    } else {
      extents.push_back(shape[k]);
      strides.push_back(stride);
    }
    merges = k != axis && shape[k] == data_shape[k];
    stride *= data_shape[k];
  }
  if (extents.size() == 1) {  // an axis of one part, since the only one cannot be split
    extents.push_back(1);
    strides.push_back(0);
  }
  const size_t rank = extents.size();
  for (size_t k = rank; k-- > 0;) {
    shape_.push_back(extents[k]);
    strides_.push_back(strides[k]);
  }
  axis_ = rank - 1 - axis_;
  split_ = axis_ == 0 ? 1 : 0;
  for (size_t k = 0; k < rank; ++k) {
    if (k != axis_ && shape_[k] > shape_[split_]) split_ = k;
  }
}

}  // namespace rlx::cpu
