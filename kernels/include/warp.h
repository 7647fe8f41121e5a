// Values of any type across the lanes of a warp, and reductions over a warp or a block.
#pragma once

#include "kernels/include/index.h"

namespace rlx {

template <class T> struct ShuffleWords {
  static constexpr int count = (int(sizeof(T)) + 3) / 4;
  int w[count];
};

// The value of lane `lane ^ bits`.
template <class T> RLX_FN T shuffle_xor(T value, int bits) {
  ShuffleWords<T> words = {};
  copy_bytes(&words, &value, sizeof(T));
#pragma unroll
  for (int i = 0; i < ShuffleWords<T>::count; ++i) {
    words.w[i] = __shfl_xor_sync(all_lanes, words.w[i], bits);
  }
  copy_bytes(&value, &words, sizeof(T));
  return value;
}
template <class T> RLX_FN T shuffle_up(T value, int by) {
  ShuffleWords<T> words = {};
  copy_bytes(&words, &value, sizeof(T));
#pragma unroll
  for (int i = 0; i < ShuffleWords<T>::count; ++i) {
    words.w[i] = __shfl_up_sync(all_lanes, words.w[i], unsigned(by));
  }
  copy_bytes(&value, &words, sizeof(T));
  return value;
}
template <class T> RLX_FN T shuffle_from(T value, int lane) {
  ShuffleWords<T> words = {};
  copy_bytes(&words, &value, sizeof(T));
#pragma unroll
  for (int i = 0; i < ShuffleWords<T>::count; ++i) {
    words.w[i] = __shfl_sync(all_lanes, words.w[i], lane);
  }
  copy_bytes(&value, &words, sizeof(T));
  return value;
}

// combine(a, b) over all lanes, given to all of them; in a fixed order.
template <class T, class F> RLX_FN T warp_reduce(T value, F combine) {
#pragma unroll
  for (int bits = 16; bits > 0; bits /= 2) value = combine(value, shuffle_xor(value, bits));
  return value;
}

// The same over `threads` neighbours: a warp, or a whole block whose `parts` (one for each warp)
// lie in shared memory. All threads of the block must call it.
template <int threads, class T, class F> RLX_FN T group_reduce(T value, T* parts, F combine) {
  value = warp_reduce(value, combine);
  if constexpr (threads > warp_size) {
    constexpr int warps = threads / warp_size;
    __syncthreads();  // parts may still be read from the last time
    if (lane_id() == 0) parts[warp_id()] = value;
    __syncthreads();
    value = parts[0];
#pragma unroll 4
    for (int w = 1; w < warps; ++w) value = combine(value, parts[w]);
  }
  return value;
}

template <class T> RLX_FN T add_values(T a, T b) { return a + b; }

}  // namespace rlx
