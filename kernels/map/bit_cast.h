// BitCast: the same bits under another element type of the same size.
#pragma once

#include "kernels/include/element.h"
#include "kernels/params/map.h"

namespace rlx::map {

template <class T> RLX_FN void bit_cast(const params::Map& p, long long item) {
  static_cast<T*>(p.operands[1].data)[item] = static_cast<const T*>(p.operands[0].data)[item];
}

}  // namespace rlx::map
