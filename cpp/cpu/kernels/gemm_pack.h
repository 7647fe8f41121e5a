// Copies of A and B in the layouts that the inner kernels read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cpu/kernels/gemm_kernels.h"

namespace rlx::cpu {

constexpr int64_t pack_chunk = 64;  // values widened at a time before they are transposed

// `count` values of `type` at `from` as T: in place where T is the type, else through `buffer`.
template <class T>
const T* read_as(DType type, const void* from, int64_t count, T* buffer) {
  if constexpr (std::is_same_v<T, float>) {
    if (type != DType::float32) {
      gemm_table().floats.widen(type, from, count, buffer);
      return buffer;
    }
  }
  return static_cast<const T*>(from);
}

template <class T>
void copy_values(const T* from, int64_t count, T* to) {
  int64_t i = 0;
  constexpr int64_t unit = 32 / sizeof(T);
  for (; i + unit <= count; i += unit) std::memcpy(to + i, from + i, 32);
  for (; i < count; ++i) to[i] = from[i];
}

// Columns [0, n) of B stored [k, n] to panels of `width` columns, each [k, width].
template <class T>
void pack_rows(DType type, const void* from, int64_t ld, int64_t k, int64_t n, int width, T* to) {
  constexpr int64_t most = 64;  // columns read in one go
  T buffer[most];
  const int64_t together = most / width * width;
  const char* source = static_cast<const char*>(from);
  for (int64_t first = 0; first < n; first += together) {
    const int64_t count = std::min(together, n - first);
    for (int64_t row = 0; row < k; ++row) {
      const int64_t offset = (row * ld + first) * int64_t(size_of(type));
      const T* values = read_as<T>(type, source + offset, count, buffer);
      T* panel = to + first * k + row * width;
      int64_t done = 0;
      for (; done + width <= count; done += width, panel += k * width) {
        copy_values(values + done, width, panel);
      }
      if (done == count) continue;
      copy_values(values + done, count - done, panel);
      std::fill(panel + (count - done), panel + width, T{});
    }
  }
}

// Columns [0, n) of B stored [n, k] to panels of `width` columns, each [k, width].
template <class T>
void pack_cols(const GemmKernels<T>& kernels, DType type, const void* from, int64_t ld, int64_t k,
               int64_t n, T* to) {
  const int width = kernels.cols;
  const char* source = static_cast<const char*>(from);
  constexpr int64_t most_width = 32;
  T buffer[most_width * pack_chunk];
  const bool as_it_is = read_as<T>(type, source, 0, buffer) != buffer;
  for (int64_t first = 0; first < n; first += width, to += k * width) {
    const int64_t count = std::min<int64_t>(width, n - first);
    const char* rows = source + first * ld * int64_t(size_of(type));
    if (count < width) std::fill(to, to + k * width, T{});
    if (as_it_is) {
      kernels.transpose(reinterpret_cast<const T*>(rows), ld, count, k, to, width);
      continue;
    }
    for (int64_t at = 0; at < k; at += pack_chunk) {
      const int64_t length = std::min(pack_chunk, k - at);
      for (int64_t j = 0; j < count; ++j) {
        const char* values = rows + (j * ld + at) * int64_t(size_of(type));
        read_as<T>(type, values, length, buffer + j * pack_chunk);
      }
      kernels.transpose(buffer, pack_chunk, count, length, to + at * width, width);
    }
  }
}

template <class T>
void pack_columns(const GemmKernels<T>& kernels, DType type, const void* from, int64_t ld,
                  bool trans, int64_t k, int64_t n, T* to) {
  if (trans) pack_cols(kernels, type, from, ld, k, n, to);
  else pack_rows(type, from, ld, k, n, kernels.cols, to);
}

// Rows [row, row + rows) by columns [at, at + length) of A, however it is given, as `to`.
template <class T>
void pack_a_block(const GemmKernels<T>& kernels, const GemmCall& call, const void* a,
                  int64_t a_offset, int64_t row, int64_t rows, int64_t at, int64_t length, T* to,
                  int64_t to_ld) {
  const int64_t bytes = int64_t(size_of(call.a_type)), lda = call.shape.lda;
  const char* source = static_cast<const char*>(a) + a_offset * bytes;
  if (call.taps > 0) {
    const int64_t run = call.shape.k / call.taps;
    const char* const* table = static_cast<const char* const*>(a);
    for (int64_t i = 0; i < rows; ++i, to += to_ld) {
      const char* const* taps = table + (row + i) * call.taps;
      for (int64_t done = 0; done < length;) {
        const int64_t tap = (at + done) / run, inside = (at + done) % run;
        const int64_t count = std::min(run - inside, length - done);
        const char* values = taps[tap] + (a_offset + inside) * bytes;
        const T* ready = read_as<T>(call.a_type, values, count, to + done);
        if (ready != to + done) copy_values(ready, count, to + done);
        done += count;
      }
    }
  } else if (!call.shape.trans_a) {
    for (int64_t i = 0; i < rows; ++i) {
      const char* values = source + ((row + i) * lda + at) * bytes;
      const T* ready = read_as<T>(call.a_type, values, length, to + i * to_ld);
      if (ready != to + i * to_ld) copy_values(ready, length, to + i * to_ld);
    }
  } else {
    constexpr int64_t deep = 16;
    T buffer[deep * pack_chunk];
    for (int64_t first = 0; first < rows; first += pack_chunk) {
      const int64_t count = std::min(pack_chunk, rows - first);
      for (int64_t k = 0; k < length; k += deep) {
        const int64_t depth = std::min(deep, length - k);
        const char* corner = source + ((at + k) * lda + row + first) * bytes;
        const T* values = reinterpret_cast<const T*>(corner);
        int64_t values_ld = lda;
        for (int64_t i = 0; i < depth; ++i) {
          const char* line = corner + i * lda * bytes;
          if (read_as<T>(call.a_type, line, count, buffer + i * pack_chunk) ==
              buffer + i * pack_chunk) {
            values = buffer;
            values_ld = pack_chunk;
          }
        }
        kernels.transpose(values, values_ld, depth, count, to + first * to_ld + k, to_ld);
      }
    }
  }
}

}  // namespace rlx::cpu
