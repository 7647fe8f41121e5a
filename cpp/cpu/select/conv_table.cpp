// Writes tables of pointers to input pixels, and reorders weights.
#include "cpu/select/conv_table.h"

#include <algorithm>

namespace rlx::cpu {
namespace {

template <class T>
void reorder(const ConvGeometry& g, int64_t group, const T* w, T* to) {
  const int64_t in = g.in_per_group(), out = g.out_per_group(), taps = g.taps();
  for (int64_t c = 0; c < in; ++c) {
    for (int64_t m = 0; m < out; ++m) {
      const int64_t row = g.transposed ? (group * in + c) * out + m : (group * out + m) * in + c;
      for (int64_t t = 0; t < taps; ++t) to[(t * in + c) * out + m] = w[row * taps + t];
    }
  }
}

}  // namespace

PixelTable::PixelTable(const ConvGeometry& geometry, size_t item)
    : geometry_(geometry), item_(item), is_x_(geometry.pointwise()) {
  for (int axis = 0; axis < 3; ++axis) axes_[axis] = axis_taps(geometry, axis);
}

std::unique_ptr<PixelTable::State> PixelTable::make_state(int padding) const {
  auto state = std::make_unique<State>();
  if (is_x_) return state;
  const ConvGeometry& g = geometry_;
  state->pointers.resize(size_t(g.batch * g.out_pixels() * g.taps()));
  // The product shifts every pointer by the group's first channel.
  state->padding.assign(size_t(g.in_channels) * item_, std::byte(padding));
  return state;
}

const void* PixelTable::operand(State& state, const void* x) const {
  if (is_x_) return x;
  if (state.x != x) fill(state, static_cast<const std::byte*>(x));
  return state.pointers.data();
}

void PixelTable::fill(State& state, const std::byte* x) const {
  const ConvGeometry& g = geometry_;
  const void** to = state.pointers.data();
  std::fill(state.pointers.begin(), state.pointers.end(), state.padding.data());
  for (int64_t n = 0; n < g.batch; ++n) {
    const std::byte* image = x + n * g.x.batch * int64_t(item_);
    for (int64_t d = 0; d < g.out[0]; ++d) {
      for (int64_t h = 0; h < g.out[1]; ++h) {
        for (int64_t w = 0; w < g.out[2]; ++w, to += g.taps()) {
          const TapRun* runs[3] = {&axes_[0].runs[size_t(d)], &axes_[1].runs[size_t(h)],
                                   &axes_[2].runs[size_t(w)]};
          fill_pixel(runs, image, to);
        }
      }
    }
  }
  state.x = x;
}

void PixelTable::fill_pixel(const TapRun* const* runs, const std::byte* image,
                            const void** to) const {
  const ConvGeometry& g = geometry_;
  for (int64_t i = 0; i < runs[0]->count; ++i) {
    const int64_t tap0 = (runs[0]->tap + i * axes_[0].tap_step) * g.kernel[1];
    const int64_t at0 = (runs[0]->source + i * axes_[0].source_step) * g.x.space[0];
    for (int64_t j = 0; j < runs[1]->count; ++j) {
      const int64_t tap1 = (tap0 + runs[1]->tap + j * axes_[1].tap_step) * g.kernel[2];
      const int64_t at1 = at0 + (runs[1]->source + j * axes_[1].source_step) * g.x.space[1];
      for (int64_t k = 0; k < runs[2]->count; ++k) {
        const int64_t at = at1 + (runs[2]->source + k * axes_[2].source_step) * g.x.space[2];
        to[tap1 + runs[2]->tap + k * axes_[2].tap_step] = image + at * int64_t(item_);
      }
    }
  }
}

void reorder_weights(const ConvGeometry& g, size_t item, int64_t group, const void* w, void* to) {
  const auto as = [&](auto tag) {
    reorder(g, group, static_cast<const decltype(tag)*>(w), static_cast<decltype(tag)*>(to));
  };
  switch (item) {
    case 1: return as(uint8_t{});
    case 2: return as(uint16_t{});
    case 4: return as(uint32_t{});
    default: return as(uint64_t{});
  }
}

}  // namespace rlx::cpu
