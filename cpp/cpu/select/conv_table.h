// What convolutions by a matrix product share: the table of pointers that stands for A, and the
// order of the weights that goes with it.
#pragma once

#include <vector>

#include "backend.h"
#include "cpu/kernels/conv.h"

namespace rlx::cpu {

// For each output pixel and tap, the input channels that it reads; padding reads a row apart.
class PixelTable {
 public:
  struct State : StepState {
    std::vector<const void*> pointers;
    std::vector<std::byte> padding;
    const void* x = nullptr;
  };

  PixelTable(const ConvGeometry& geometry, size_t item);

  // True if pixels lie behind one another and each reads only itself: x itself is A.
  bool is_x() const { return is_x_; }
  int64_t taps() const { return is_x_ ? 0 : geometry_.taps(); }
  std::unique_ptr<State> make_state(int padding) const;  // every byte of the padding
  // A for an x at this address. The table is written anew only when that changes.
  const void* operand(State& state, const void* x) const;

 private:
  void fill(State& state, const std::byte* x) const;
  void fill_pixel(const TapRun* const* runs, const std::byte* image, const void** to) const;

  ConvGeometry geometry_;
  AxisTaps axes_[3];
  size_t item_;
  bool is_x_;
};

// w of one group as [taps, channels in, channels out], for elements of `item` bytes.
void reorder_weights(const ConvGeometry& geometry, size_t item, int64_t group, const void* w,
                     void* to);

}  // namespace rlx::cpu
