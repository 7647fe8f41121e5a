// The iteration space of a Region as a kernel sees it: merged axes and the accesses over them.
#pragma once

#include <cstdint>
#include <vector>

#include "cuda/select/region_source.h"

namespace rlx::cuda {

// An access to one axis by coordinate / div % mod.
struct MapUse {
  int axis;
  int64_t div, mod, stride;
};

// How an operand, or the coordinate that an "index" op gives, moves along each axis.
struct RegionAccess {
  std::vector<int64_t> strides;  // one for each axis
  std::vector<MapUse> maps;
};

// Finds the space of a Region and fills the parameters; the base of what writes its text.
class RegionAxes {
 protected:
  explicit RegionAxes(const RegionSpec& spec);

  int64_t number(ExprId id, int64_t otherwise) const {
    return id < 0 ? otherwise : spec_.numbers[size_t(id)].i;
  }
  bool is_given(size_t input) const { return spec_.given != DType::none && input == 0; }
  bool is_index(size_t access) const;
  size_t last() const { return extents_.size() - 1; }
  int slot_of(size_t access) const;  // of the pointer, among params::Region::operands

  const RegionSpec& spec_;
  const Region& region_;
  std::vector<int64_t> extents_;
  // The inputs that are loaded, then "index" ops by axis, then the outputs.
  std::vector<RegionAccess> accesses_;
  std::vector<int> input_access_, index_access_;  // -1: none
  size_t first_output_ = 0;
  RegionSource made_;

 private:
  void find_accesses();
  bool is_loaded(size_t input) const;
  void add_input(size_t i);
  bool pinned(size_t axis) const;
  void drop_axis(size_t axis);
  void merge_axes();
  size_t item_of(size_t access) const;
  bool fits(int vector) const;
  void choose_vector();
  bool reaches_far() const;
  void fill_params();
};

}  // namespace rlx::cuda
