// Runs a compiled Region: finds each box's operands, then calls one loop for each instruction.
#include "cpu/kernels/region.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "cpu/kernels/region_frame.h"
#include "cpu/team.h"

namespace rlx::cpu {
namespace {

// A share worth waking another thread for, in nanoseconds of work.
constexpr double share_ns = 15000;

size_t padded(size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

RegionProgram::Frame& RegionProgram::begin(void* scratch, const void* const* inputs) const {
  auto* base = static_cast<std::byte*>(scratch);
  auto& frame = *reinterpret_cast<Frame*>(base);
  base += padded(sizeof(Frame));
  frame.inputs = inputs;
  frame.outputs = nullptr;
  frame.first = nullptr;
  frame.done = 0;
  frame.row = -1;
  frame.seen = reinterpret_cast<Frame::Seen*>(base);
  base += padded(sources_.size() * sizeof(Frame::Seen));
  frame.slots = reinterpret_cast<void**>(base);
  base += padded(slots_.size() * sizeof(void*));
  for (size_t k = 0; k < sources_.size(); ++k) frame.seen[k] = {nullptr, -1};
  std::memcpy(frame.slots, slots_.data(), slots_.size() * sizeof(void*));
  for (const Pointer& p : pointers_) frame.slots[p.slot] = base + p.offset;
  return frame;
}

void RegionProgram::run(const void* const* inputs, void* const* outputs, void* scratch,
                        int threads) const {
  if (count_ == 0) return;
  const double tile_ns = cost_ * double(box_extent_ * box_inner_);
  const auto grain = int64_t(std::max(1.0, share_ns / tile_ns));
  parallel_for(threads, tiles_, grain, [&](int64_t first, int64_t last) {
    const size_t thread = tiles_ > 1 ? size_t(team_share()) : 0;
    Frame& frame = begin(static_cast<std::byte*>(scratch) + thread * frame_bytes_, inputs);
    frame.outputs = outputs;
    run_tiles(frame, first, last);
  });
}

// Sets the index of axes [first, last) to a row-major position among them.
void RegionProgram::seek(Frame& frame, int64_t position, int first, int last) const {
  for (int axis = last; axis-- > first;) {
    if (axis == first) {
      frame.index[axis] = position;
      return;
    }
    const int64_t extent = space_.extents[size_t(axis)];
    frame.index[axis] = position % extent;
    position /= extent;
  }
}

void RegionProgram::run_tiles(Frame& frame, int64_t begin, int64_t end) const {
  if (space_.extents.empty()) return run_box(frame, 1);
  const int64_t extent = space_.extents[size_t(box_axis_)];
  const int64_t parts = (extent + box_extent_ - 1) / box_extent_;
  seek(frame, begin / parts, 0, box_axis_);
  frame.index[box_axis_] = begin % parts * box_extent_;
  for (int64_t tile = begin; tile < end; ++tile) {
    int64_t& at = frame.index[box_axis_];
    run_box(frame, std::min(box_extent_, extent - at) * box_inner_);
    at += box_extent_;
    if (at < extent) continue;
    at = 0;
    for (int axis = box_axis_; axis-- > 0;) {
      if (++frame.index[axis] < space_.extents[size_t(axis)]) break;
      frame.index[axis] = 0;
    }
  }
}

void RegionProgram::evaluate(Frame& frame, int64_t row, int64_t column, int64_t n,
                             void* const* outputs, const void* first) const {
  const int axes = int(space_.extents.size()), rows = space_.row_axes;
  frame.outputs = outputs;
  frame.first = first;
  frame.done = 0;
  if (row != frame.row) {
    seek(frame, row, 0, rows);
    frame.row = row;
  }
  if (rows == axes) return run_box(frame, 1);
  const int64_t extent = space_.extents[size_t(axes) - 1];
  while (frame.done < n) {
    seek(frame, column + frame.done, rows, axes);
    const int64_t left = std::min(n - frame.done, extent - frame.index[axes - 1]);
    const int64_t part = std::min(left, box_extent_);
    run_box(frame, part);
    frame.done += part;
  }
}

namespace {

int64_t offset_of(const Access& access, const int64_t* index, int axes) {
  int64_t offset = 0;
  for (int axis = 0; axis < axes; ++axis) offset += access.strides[size_t(axis)] * index[axis];
  for (const AxisTable& table : access.tables) {
    if (table.axis < axes) offset += table.offsets[size_t(index[table.axis])];
  }
  return offset;
}


// A box of an operand: where it starts, and how its runs are found.
struct Walk {
  const Access& access;
  const int64_t* index;
  int box_axis;

  int64_t start(int axis) const { return axis <= box_axis ? index[axis] : 0; }
  // From the start of the box `i` steps along an axis.
  template <class Axis>
  int64_t step(const Axis& axis, int64_t i) const {
    if (access.tables.empty() || !access.tabled(axis.axis)) return i * axis.stride;
    const int64_t first = start(axis.axis);
    return access.offset_along(axis.axis, first + i) - access.offset_along(axis.axis, first);
  }

  // leaf(element, offset, axis, n) for each run along the innermost axis; gives the next element.
  // A leaf of `Axis, Axis` takes the last two at once: (element, offset, n, outer, inner).
  template <class Axis, class Leaf>
  int64_t run(std::span<const Axis> axes, int64_t extent, int64_t element, int64_t offset,
              Leaf& leaf) const {
    if constexpr (std::is_invocable_v<Leaf&, int64_t, int64_t, int64_t, Axis, Axis>) {
      if (axes.size() == 2) {
        leaf(element, offset, extent, axes[0], axes[1]);
        return element + extent * axes[1].extent;
      }
    } else if (axes.size() == 1) {
      leaf(element, offset, axes[0], extent);
      return element + extent;
    }
    for (int64_t i = 0; i < extent; ++i) {
      element = run(axes.subspan(1), axes[1].extent, element, offset + step(axes[0], i), leaf);
    }
    return element;
  }
};

}  // namespace

// Copies a source's box to its slot, unless it stands there.
void RegionProgram::place(Frame& frame, const Operand& source, size_t k, int64_t n) const {
  const int64_t at = offset_of(source.access, frame.index, indexed_axes());
  auto* dst = static_cast<std::byte*>(frame.slots[source.slot]);
  const Walk walk{source.access, frame.index, box_axis_};
  const std::span<const BoxAxis> box(source.box);
  if (source.number < 0) {
    auto* out = reinterpret_cast<int64_t*>(dst);
    if (source.single || box.empty()) return void(*out = at);
    auto leaf = [&](int64_t element, int64_t first, const BoxAxis& axis, int64_t count) {
      for (int64_t i = 0; i < count; ++i) out[element + i] = first + i * axis.stride;
    };
    walk.run(box, n / source.inner, 0, at, leaf);
    return;
  }
  const auto* from = static_cast<const std::byte*>(frame.inputs[source.number]) + at * source.item;
  Frame::Seen& seen = frame.seen[k];
  const bool plain = source.access.tables.empty();
  if (plain && seen.from == from && seen.n == n) return;
  seen = {from, n};
  if (source.transposed) {  // along what is contiguous: each cache line is read once
    for (int64_t j = 0; j < source.inner; ++j) {
      source.move(dst + j * source.item, from + j * box[1].stride * source.item, source.inner,
                  n / source.inner);
    }
    return;
  }
  if (plain && box.size() > 1) {
    auto leaf = [&](int64_t element, int64_t offset, int64_t count, BoxAxis outer, BoxAxis inner) {
      source.move_rows(dst + element * source.item, from + offset * source.item, outer.stride,
                       inner.stride, count, inner.extent);
    };
    walk.run(box, n / source.inner, 0, 0, leaf);
    return;
  }
  auto leaf = [&](int64_t element, int64_t offset, const BoxAxis& axis, int64_t count) {
    std::byte* to = dst + element * source.item;
    if (plain) return source.move(to, from + offset * source.item, axis.stride, count);
    for (int64_t i = 0; i < count; ++i, to += source.item) {
      source.move(to, from + (offset + walk.step(axis, i)) * source.item, 1, 1);
    }
  };
  walk.run(box, n / source.inner, 0, 0, leaf);
}

void RegionProgram::run_box(Frame& frame, int64_t n) const {
  void** slots = frame.slots;
  const int axes = indexed_axes();
  for (size_t k = 0; k < sources_.size(); ++k) {
    const Operand& source = sources_[k];
    if (source.kind == Operand::Kind::copied) {
      place(frame, source, k, n);
      continue;
    }
    const bool given = given_first_ && source.number == 0;
    const void* base = given ? frame.first : frame.inputs[source.number];
    const int64_t at = given ? frame.done : offset_of(source.access, frame.index, axes);
    slots[source.slot] = static_cast<std::byte*>(const_cast<void*>(base)) + at * source.item;
  }
  for (const Operand& sink : sinks_) {
    if (sink.kind != Operand::Kind::direct) continue;
    const int64_t at = rows_ ? frame.done : offset_of(sink.access, frame.index, axes);
    slots[sink.slot] = static_cast<std::byte*>(frame.outputs[sink.number]) + at * sink.item;
  }
  for (const Instruction& i : instructions_) {
    i.loop(slots[i.dst], slots[i.a], slots[i.b], slots[i.c], i.one ? 1 : n);
  }
  for (const Operand& sink : sinks_) {
    if (sink.kind == Operand::Kind::copied) store(frame, sink, n);
  }
}

// Copies a finished value from its slot to where its output's strides say.
void RegionProgram::store(Frame& frame, const Operand& sink, int64_t n) const {
  const auto* from = static_cast<const std::byte*>(frame.slots[sink.slot]);
  auto* to = static_cast<std::byte*>(frame.outputs[sink.number]);
  if (rows_) {
    std::memcpy(to + frame.done * sink.item, from, size_t(n * sink.item));
    return;
  }
  to += offset_of(sink.access, frame.index, indexed_axes()) * sink.item;
  if (sink.box.empty()) {
    std::memcpy(to, from, size_t(n * sink.item));
    return;
  }
  auto leaf = [&](int64_t element, int64_t offset, const BoxAxis& axis, int64_t count) {
    sink.move(to + offset * sink.item, from + element * sink.item, axis.stride, count);
  };
  const Walk walk{sink.access, frame.index, box_axis_};
  walk.run(std::span<const BoxAxis>(sink.box), n / sink.inner, 0, 0, leaf);
}

}  // namespace rlx::cpu
