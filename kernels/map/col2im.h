// Col2Im: an item is one element of the image, which adds up all that the blocks hold for it.
#pragma once

#include "kernels/include/scalar_ops.h"
#include "kernels/include/storage.h"
#include "kernels/params/map.h"

namespace rlx::map {

// x [N, C * product(block), blocks] -> y [N, C, D...]; ints: for each of the (up to 4) axes its
// block, blocks, stride, dilation and pad at the beginning.
template <class T> RLX_FN void col2im(const params::Map& p, long long item) {
  using W = scalar::Compute<T>;
  const params::MapOperand& y = p.operands[1];
  const int rank = y.rank - 2;
  long long at[4] = {}, rest = item, taps = 1, blocks = 1;
  for (int k = rank - 1; k >= 0; --k) {
    at[k] = rest % y.shape[2 + k] + p.ints[5 * k + 4];
    rest /= y.shape[2 + k];
    taps *= p.ints[5 * k];
    blocks *= p.ints[5 * k + 1];
  }
  const T* from = static_cast<const T*>(p.operands[0].data) + rest * taps * blocks;
  W sum = 0;
  for (long long tap = 0; tap < taps; ++tap) {
    long long left = tap, column = 0, scale = 1;
    bool hit = true;
    for (int k = rank - 1; k >= 0 && hit; --k) {
      const long long* axis = p.ints + 5 * k;
      const long long reach = at[k] - left % axis[0] * axis[3], block = reach / axis[2];
      hit = reach >= 0 && reach % axis[2] == 0 && block < axis[1];
      column += block * scale;
      scale *= axis[1];
      left /= axis[0];
    }
    if (hit) sum = scalar::add(sum, W(scalar::widen(from[tap * blocks + column])));
  }
  static_cast<T*>(y.data)[item] = scalar::narrow<T>(sum);
}

}  // namespace rlx::map
