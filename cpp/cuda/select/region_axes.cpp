// Finds the axes and accesses of a Region: what all operands allow to merge is merged.
#include "cuda/select/region_axes.h"

#include <algorithm>

namespace rlx::cuda {

RegionAxes::RegionAxes(const RegionSpec& spec) : spec_(spec), region_(*spec.region) {
  find_accesses();
  merge_axes();
  choose_vector();
  fill_params();
}

void RegionAxes::find_accesses() {
  for (ExprId dim : region_.shape) extents_.push_back(number(dim, 1));
  made_.params.count = element_count(extents_);
  for (size_t i = 0; i < spec_.inputs.size(); ++i) {
    const bool loads = !is_given(i) && spec_.inputs[i].dtype != DType::none && is_loaded(i);
    input_access_.push_back(loads ? int(accesses_.size()) : -1);
    if (loads) add_input(i);
  }
  index_access_.assign(extents_.size(), -1);
  for (const RegionOp& op : region_.ops) {
    if (op.kind != RegionOp::Kind::index || index_access_[size_t(op.args[0])] >= 0) continue;
    index_access_[size_t(op.args[0])] = int(accesses_.size());
    accesses_.push_back({std::vector<int64_t>(extents_.size(), 0), {}});
    accesses_.back().strides[size_t(op.args[0])] = 1;
  }
  first_output_ = accesses_.size();
  for (size_t k = 0; k < spec_.outputs.size(); ++k) {
    accesses_.push_back({std::vector<int64_t>(extents_.size(), 0), {}});
    const Dims& strides = spec_.outputs[k].strides;
    if (strides.size() == extents_.size()) {
      accesses_.back().strides.assign(strides.begin(), strides.end());
    }
    made_.operands.push_back(-1 - int(k));
  }
  if (made_.operands.size() > size_t(params::region_operands)) {
    throw Error(ErrorKind::unsupported,
                "an elementwise computation with more than " +
                    std::to_string(params::region_operands) + " operands");
  }
}

bool RegionAxes::is_loaded(size_t input) const {
  for (const RegionOp& op : region_.ops) {
    if (op.kind == RegionOp::Kind::load && size_t(op.args[0]) == input) return true;
  }
  return false;
}

void RegionAxes::add_input(size_t i) {
  RegionAccess access{std::vector<int64_t>(extents_.size(), 0), {}};
  const TensorDesc& x = spec_.inputs[i];
  const auto& maps = region_.accesses[i];
  for (size_t k = 0; k < maps.size(); ++k) {
    const int axis = maps[k].axis;
    if (axis < 0 || x.shape[k] == 1) continue;
    const int64_t extent = extents_[size_t(axis)], div = number(maps[k].div, 1);
    int64_t mod = number(maps[k].mod, 0);
    if (div < 1 || mod < 0) throw Error(ErrorKind::internal, "an access map divides by zero");
    const int64_t last = extent > 0 ? (extent - 1) / div : 0;
    if (mod > last) mod = 0;
    if ((mod ? mod - 1 : last) >= x.shape[k] && made_.params.count > 0) {
      throw Error(ErrorKind::internal, "an access leaves its operand");
    }
    if (div == 1 && mod == 0) access.strides[size_t(axis)] += x.strides[k];
    else if (last > 0) access.maps.push_back({axis, div, mod, x.strides[k]});
  }
  made_.operands.push_back(int(i));
  accesses_.push_back(std::move(access));
}

bool RegionAxes::pinned(size_t axis) const {
  for (const RegionAccess& a : accesses_) {
    for (const MapUse& m : a.maps) {
      if (m.axis == int(axis)) return true;
    }
  }
  return false;
}

void RegionAxes::drop_axis(size_t axis) {
  const auto erase = [axis](std::vector<int64_t>& dims) {
    dims.erase(dims.begin() + int64_t(axis));
  };
  erase(extents_);
  for (RegionAccess& a : accesses_) {
    erase(a.strides);
    for (MapUse& m : a.maps) m.axis -= m.axis > int(axis);
  }
}

void RegionAxes::merge_axes() {
  for (size_t k = extents_.size(); k-- > 0;) {
    if (extents_[k] == 1) drop_axis(k);
  }
  for (size_t k = extents_.size(); k-- > 1;) {
    bool joins = !pinned(k) && !pinned(k - 1);
    for (const RegionAccess& a : accesses_) {
      joins = joins && a.strides[k - 1] == a.strides[k] * extents_[k];
    }
    if (!joins) continue;
    const int64_t extent = extents_[k];
    std::vector<int64_t> inner;
    for (const RegionAccess& a : accesses_) inner.push_back(a.strides[k]);
    extents_[k - 1] *= extent;
    for (size_t a = 0; a < accesses_.size(); ++a) accesses_[a].strides[k - 1] = inner[a];
    drop_axis(k);
  }
  if (extents_.empty()) {
    extents_.push_back(1);
    for (RegionAccess& a : accesses_) a.strides.push_back(0);
  }
  if (extents_.size() > size_t(params::region_axes)) {
    throw Error(ErrorKind::unsupported, "an elementwise computation over more than " +
                                            std::to_string(params::region_axes) + " axes");
  }
}

size_t RegionAxes::item_of(size_t access) const {
  if (access >= first_output_) return size_of(spec_.outputs[access - first_output_].dtype);
  for (size_t i = 0; i < input_access_.size(); ++i) {
    if (input_access_[i] == int(access)) return size_of(spec_.inputs[i].dtype);
  }
  return 8;
}

bool RegionAxes::is_index(size_t access) const {
  for (int a : index_access_) {
    if (a == int(access)) return true;
  }
  return false;
}

// Whether `vector` neighbours are aligned wherever an operand is contiguous.
bool RegionAxes::fits(int vector) const {
  if (extents_[last()] % vector != 0) return false;
  for (size_t a = 0; a < accesses_.size(); ++a) {
    const RegionAccess& access = accesses_[a];
    if (is_index(a) || access.strides[last()] != 1) continue;
    for (size_t k = 0; k < last(); ++k) {
      if (access.strides[k] % vector != 0) return false;
    }
    for (const MapUse& m : access.maps) {
      if (m.stride % vector != 0) return false;
    }
  }
  return true;
}

void RegionAxes::choose_vector() {
  size_t widest = 1;
  for (size_t a = 0; a < accesses_.size(); ++a) {
    if (!is_index(a)) widest = std::max(widest, item_of(a));
  }
  int vector = std::min<int>(spec_.vector_limit, int(16 / widest));
  while (vector > 1 && !fits(vector)) vector /= 2;
  made_.vector = std::max(vector, 1);
  made_.wide = reaches_far();
}

bool RegionAxes::reaches_far() const {
  constexpr int64_t limit = (int64_t{1} << 31) - 1;
  if (made_.params.count >= limit) return true;
  for (const RegionAccess& a : accesses_) {
    int64_t reach = 0;
    for (size_t k = 0; k < extents_.size(); ++k) {
      if (a.strides[k] < 0) return true;
      reach += a.strides[k] * (extents_[k] - 1);
    }
    for (const MapUse& m : a.maps) reach += m.stride * (extents_[size_t(m.axis)] - 1);
    if (reach >= limit) return true;
  }
  return false;
}

int RegionAxes::slot_of(size_t access) const {
  int slot = 0;
  for (size_t a = 0; a < access; ++a) slot += !is_index(a);
  return slot;
}

void RegionAxes::fill_params() {
  params::Region& p = made_.params;
  for (size_t k = 0; k < extents_.size(); ++k) p.extents[k] = params::Divisor(extents_[k]);
  int maps = 0;
  for (size_t a = 0; a < accesses_.size(); ++a) {
    if (!is_index(a)) {
      for (size_t k = 0; k < extents_.size(); ++k) {
        p.strides[slot_of(a)][k] = accesses_[a].strides[k];
      }
    }
    for (const MapUse& m : accesses_[a].maps) {
      if (maps == params::region_maps) {
        throw Error(ErrorKind::unsupported, "an elementwise computation with more than " +
                                                std::to_string(params::region_maps) +
                                                " repeated axes");
      }
      p.map_div[maps] = params::Divisor(m.div);
      p.map_mod[maps] = params::Divisor(std::max<int64_t>(m.mod, 1));
      p.map_stride[maps++] = m.stride;
    }
  }
}

}  // namespace rlx::cuda
