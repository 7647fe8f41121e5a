// Splits axes where a quotient or a modulus asks for it, then merges all that runs together.
#include "cpu/kernels/region_space.h"

#include <algorithm>
#include <string>

#include "core/error.h"

namespace rlx::cpu {
namespace {

// An axis of the Region's shape, cut into sub-axes at periods that divide each other.
struct Cuts {
  Dims periods;         // ascending, each dividing the next and the extent
  bool tabled = false;  // some use fits no such chain
};

// The use with what does not matter taken away; false when its index is always 0.
bool normalise(AxisUse& use, std::span<const int64_t> shape) {
  if (use.axis < 0 || use.extent == 1) return false;
  const int64_t n = shape[size_t(use.axis)];
  if (n <= 1) return false;
  use.div = std::max<int64_t>(use.div, 1);
  const int64_t count = (n - 1) / use.div + 1;
  if (use.mod >= count) use.mod = 0;
  if ((use.mod != 0 ? use.mod : count) > use.extent) {
    throw Error(ErrorKind::internal, "axis " + std::to_string(use.axis) + " of extent " +
                                         std::to_string(n) + " leaves an operand's axis of " +
                                         std::to_string(use.extent));
  }
  return count > 1 && use.mod != 1;
}

void cut(Cuts& cuts, int64_t period, int64_t extent) {
  if (period <= 1 || period >= extent || cuts.tabled) return;
  auto* at = std::lower_bound(cuts.periods.begin(), cuts.periods.end(), period);
  if (at != cuts.periods.end() && *at == period) return;
  const bool fits = extent % period == 0 && (at == cuts.periods.end() || *at % period == 0) &&
                    (at == cuts.periods.begin() || period % at[-1] == 0);
  if (!fits) {
    cuts.tabled = true;
    cuts.periods.clear();
    return;
  }
  cuts.periods.push_back(period);
  std::sort(cuts.periods.begin(), cuts.periods.end());
}

bool plain(const AxisUse& use) { return use.div == 1 && use.mod == 0; }

// A sub-axis: steps of `period` along `axis` of the Region's shape.
struct SubAxis {
  int axis;
  int64_t extent, period;
  bool tabled;
};

std::vector<SubAxis> cut_axes(std::span<const int64_t> shape, std::span<const AxisUse> uses) {
  std::vector<Cuts> cuts(shape.size());
  for (const AxisUse& use : uses) {
    Cuts& own = cuts[size_t(use.axis)];
    const int64_t n = shape[size_t(use.axis)];
    cut(own, use.div, n);
    if (use.mod != 0) cut(own, use.div * use.mod, n);
  }
  std::vector<SubAxis> axes;
  for (int axis = 0; axis < int(shape.size()); ++axis) {
    int64_t upper = shape[size_t(axis)];
    const Cuts& own = cuts[size_t(axis)];
    for (size_t k = own.periods.size(); k-- > 0; upper = own.periods[k]) {
      axes.push_back({axis, upper / own.periods[k], own.periods[k], false});
    }
    if (upper != 1) axes.push_back({axis, upper, 1, own.tabled});
  }
  return axes;
}

AxisTable table_of(const AxisUse& use, int at, int64_t extent) {
  AxisTable table{at, std::vector<int64_t>(size_t(extent))};
  for (int64_t i = 0; i < extent; ++i) {
    const int64_t index = i / use.div;
    table.offsets[size_t(i)] = (use.mod != 0 ? index % use.mod : index) * use.stride;
  }
  return table;
}

void add_use(Access& access, const AxisUse& use, std::span<const SubAxis> axes) {
  for (int k = 0; k < int(axes.size()); ++k) {
    const SubAxis& sub = axes[size_t(k)];
    if (sub.axis != use.axis) continue;
    if (sub.tabled && !plain(use)) {
      access.tables.push_back(table_of(use, k, sub.extent));
      continue;
    }
    const bool beyond = use.mod != 0 && sub.period >= use.div * use.mod;
    if (sub.period < use.div || beyond) continue;
    access.strides[size_t(k)] += use.stride * (sub.period / use.div);
  }
}

bool mergeable(const Space& space, size_t outer) {
  if (int(outer) + 1 == space.row_axes) return false;  // rows end here
  const int64_t inner_extent = space.extents[outer + 1];
  for (const Access& a : space.accesses) {
    if (a.strides[outer] != a.strides[outer + 1] * inner_extent) return false;
    if (a.tabled(int(outer)) || a.tabled(int(outer) + 1)) return false;
  }
  return true;
}

void erase(Dims& dims, size_t at) {
  std::copy(dims.begin() + at + 1, dims.end(), dims.begin() + at);
  dims.pop_back();
}

void merge(Space& space, size_t outer) {
  space.extents[outer + 1] *= space.extents[outer];
  erase(space.extents, outer);
  if (int(outer) < space.row_axes) --space.row_axes;
  for (Access& a : space.accesses) {
    erase(a.strides, outer);
    for (AxisTable& t : a.tables) t.axis -= t.axis > int(outer);
  }
}

}  // namespace

Space make_space(std::span<const int64_t> shape, int row_rank, int accesses,
                 std::span<const AxisUse> given) {
  std::vector<AxisUse> uses(given.begin(), given.end());
  std::erase_if(uses, [&](AxisUse& use) { return !normalise(use, shape); });
  const std::vector<SubAxis> axes = cut_axes(shape, uses);
  Space space;
  for (const SubAxis& sub : axes) {
    space.extents.push_back(sub.extent);
    space.row_axes += sub.axis < row_rank;
  }
  space.accesses.resize(size_t(accesses));
  for (Access& a : space.accesses) a.strides.assign(axes.size(), 0);
  for (const AxisUse& use : uses) add_use(space.accesses[size_t(use.access)], use, axes);
  for (size_t k = axes.size(); k-- > 1;) {
    if (mergeable(space, k - 1)) merge(space, k - 1);
  }
  return space;
}

namespace {

// The axis along which some operand is contiguous that is far apart along the last; else -1.
int transposed_axis(const Space& space, int accesses) {
  const int last = int(space.extents.size()) - 1;
  for (int k = 0; k < accesses; ++k) {
    const Access& a = space.accesses[size_t(k)];
    if (a.strides[size_t(last)] <= 1) continue;
    for (int axis = last; axis-- > 0;) {
      if (a.strides[size_t(axis)] == 1 && space.extents[size_t(axis)] >= 8) return axis;
    }
  }
  return -1;
}

// The values with one moved to the end, then one more put there.
void reorder(Dims& values, int moved, int64_t added) {
  const int64_t value = values[size_t(moved)];
  erase(values, size_t(moved));
  values.push_back(value);
  values.push_back(added);
}

}  // namespace

void block_transposed(Space& space, int accesses, int64_t width) {
  if (space.extents.size() < 2) return;
  for (const Access& a : space.accesses) {
    if (!a.tables.empty()) return;
  }
  const int axis = transposed_axis(space, accesses);
  const size_t last = space.extents.size() - 1;
  const int64_t extent = space.extents[last];
  int64_t part = std::min(extent, width);
  while (extent % part != 0) --part;
  if (axis < 0 || (part < 16 && part < extent)) return;
  for (Access& a : space.accesses) {
    const int64_t stride = a.strides[last];
    a.strides[last] = stride * part;
    reorder(a.strides, axis, stride);
  }
  space.extents[last] = extent / part;
  reorder(space.extents, axis, part);
}

}  // namespace rlx::cpu
