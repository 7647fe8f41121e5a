// Runs of quantised weights as floats: codes of 2 to 8 bits side by side, or plain elements.
#pragma once

#include "kernels/include/vector.h"
#include "kernels/params/matmul_dequant.h"

namespace rlx {

template <class S> struct CodeBits {
  static constexpr int value = 8 * int(sizeof(S));
};
template <class T, int width> struct CodeBits<Narrow<T, width>> {
  static constexpr int value = width;
};
template <> struct CodeBits<F4E2M1> {
  static constexpr int value = 4;
};

// Of a code in the lowest bits. An integer below 2^23 is the fraction of a float: quicker than
// the conversion that cards do.
template <class S> struct CodeValue {
  RLX_METHOD float of(unsigned code) { return Element<S>::load(S{(unsigned char)(code)}); }
};
template <class T, int width> struct CodeValue<Narrow<T, width>> {
  RLX_METHOD float of(unsigned code) {
    constexpr bool is_signed = T(-1) < T(0);
    constexpr unsigned flip = is_signed ? 1u << (width - 1) : 0u;
    return scalar::from_bits(0x4b000000u | (code ^ flip)) - (8388608.0f + float(flip));
  }
};

// `from` is aligned for the run, or for 16 bytes.
template <class T, class S, int run>
RLX_FN void load_values(T (&to)[run], const unsigned char* from) {
  constexpr int bits = CodeBits<S>::value;
  if constexpr (bits < 8) {
    constexpr int bytes = run * bits / 8, words = (bytes + 3) / 4;
    unsigned char raw[bytes];
    load_run<bytes>(raw, from);
    unsigned word[words] = {};
    copy_bytes(word, raw, bytes);
#pragma unroll
    for (int i = 0; i < run; ++i) {
      const unsigned code = word[i * bits / 32] >> (i * bits % 32) & ((1u << bits) - 1);
      to[i] = T(CodeValue<S>::of(code));
    }
  } else {
    S raw[run];
    load_run<run>(raw, reinterpret_cast<const S*>(from));
#pragma unroll
    for (int i = 0; i < run; ++i) to[i] = T(Element<S>::load(raw[i]));
  }
}

// What a run of codes of one row stands for. `even`: block_k is a multiple of the run.
template <class T, class Scale, class Zero, bool zeros, bool even, int run>
RLX_FN void apply_scales(const params::Quantised& q, long long matrix, long long row, long long k,
                         T (&x)[run]) {
  const long long line = matrix * q.scale_matrix + row / q.block_n * q.scale_row;
  const auto* scales = static_cast<const Scale*>(q.scales);
  const auto* offsets = static_cast<const Zero*>(q.zeros);
  long long at = line + k / q.block_k;
  T scale = T(load(scales + at)), zero = T(0);
  if constexpr (zeros) zero = T(load(offsets + at * q.zero_step));
#pragma unroll
  for (int i = 0; i < run; ++i) {
    if constexpr (!even) {
      if (k + i >= q.k) break;
      at = line + (k + i) / q.block_k;
      scale = T(load(scales + at));
      if constexpr (zeros) zero = T(load(offsets + at * q.zero_step));
    }
    x[i] = (x[i] - zero) * scale;
  }
}

// A run of weights from value k of a row on; zeros behind the last.
template <class T, class S, class Scale, class Zero, bool quantised, bool zeros, bool even, int run>
RLX_FN void load_weights(const params::Quantised& q, long long matrix, long long row, long long k,
                         T (&x)[run]) {
  constexpr int bits = CodeBits<S>::value;
  const auto* line = static_cast<const unsigned char*>(q.codes) + matrix * q.matrix + row * q.row;
  load_values<T, S>(x, line + k * bits / 8);
  if constexpr (quantised) apply_scales<T, Scale, Zero, zeros, even>(q, matrix, row, k, x);
#pragma unroll
  for (int i = 0; i < run; ++i) {
    if (k + i >= q.k) x[i] = T(0);
  }
}

}  // namespace rlx
