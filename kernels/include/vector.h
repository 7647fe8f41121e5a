// Runs of elements read and written as one word where they are aligned.
#pragma once

#include "kernels/include/element.h"

namespace rlx {

template <int bytes> struct WordOf;
template <> struct WordOf<1> { using type = unsigned char; };
template <> struct WordOf<2> { using type = unsigned short; };
template <> struct WordOf<4> { using type = unsigned; };
template <> struct WordOf<8> { using type = uint2; };
template <> struct WordOf<16> { using type = uint4; };

// `from` must be aligned for N elements (16 bytes at most are one word).
template <int N, class S> RLX_FN void load_run(S (&to)[N], const S* from) {
  constexpr int bytes = N * int(sizeof(S)), word = bytes < 16 ? bytes : 16;
  using Word = typename WordOf<word>::type;
  struct alignas(word) Words { Word w[bytes / word]; } words;
#pragma unroll
  for (int i = 0; i < bytes / word; ++i) words.w[i] = reinterpret_cast<const Word*>(from)[i];
  copy_bytes(to, &words, bytes);
}

template <int N, class S> RLX_FN void store_run(S* to, const S (&from)[N]) {
  constexpr int bytes = N * int(sizeof(S)), word = bytes < 16 ? bytes : 16;
  using Word = typename WordOf<word>::type;
  struct alignas(word) Words { Word w[bytes / word]; } words;
  copy_bytes(&words, from, bytes);
#pragma unroll
  for (int i = 0; i < bytes / word; ++i) reinterpret_cast<Word*>(to)[i] = words.w[i];
}

}  // namespace rlx
