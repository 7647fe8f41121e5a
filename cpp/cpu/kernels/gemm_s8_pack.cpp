// Packs the operands of 8-bit matrix products.
#include "cpu/kernels/gemm_s8_pack.h"

#include <algorithm>
#include <cstring>

namespace rlx::cpu {
namespace {

template <class T>
void widen(const T* from, int64_t step, int64_t count, int32_t zero, int16_t* to) {
  if (step == 1) {  // a loop of its own, which compilers vectorise
    for (int64_t i = 0; i < count; ++i) to[i] = int16_t(from[i] - int16_t(zero));
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = int16_t(from[i * step] - zero);
  }
}

void widen(bool is_signed, const char* from, int64_t step, int64_t count, int32_t zero,
           int16_t* to) {
  if (is_signed) widen(reinterpret_cast<const int8_t*>(from), step, count, zero, to);
  else widen(reinterpret_cast<const uint8_t*>(from), step, count, zero, to);
}

}  // namespace

void s8_read_row(const GemmS8Call& call, const void* a, int64_t a_offset, int64_t row, int64_t at,
                 int64_t length, int32_t zero, int16_t* to) {
  if (call.taps > 0) {
    const int64_t run = call.shape.k / call.taps;
    const char* const* taps = static_cast<const char* const*>(a) + row * call.taps;
    for (int64_t done = 0; done < length;) {
      const int64_t tap = (at + done) / run, inside = (at + done) % run;
      const int64_t count = std::min(run - inside, length - done);
      widen(call.a_signed, taps[tap] + a_offset + inside, 1, count, zero, to + done);
      done += count;
    }
    return;
  }
  const char* source = static_cast<const char*>(a) + a_offset;
  const int64_t lda = call.shape.lda;
  if (call.shape.trans_a) widen(call.a_signed, source + at * lda + row, lda, length, zero, to);
  else widen(call.a_signed, source + row * lda + at, 1, length, zero, to);
}

void s8_read_bytes(const GemmS8Call& call, int64_t a_offset, int64_t row, uint8_t* to) {
  const int64_t k = call.shape.k, lda = call.shape.lda;
  if (call.taps > 0) {
    const int64_t run = k / call.taps;
    const char* const* taps = static_cast<const char* const*>(call.a) + row * call.taps;
    for (int64_t t = 0; t < call.taps; ++t) {
      std::memcpy(to + t * run, taps[t] + a_offset, size_t(run));
    }
  } else {
    const uint8_t* source = static_cast<const uint8_t*>(call.a) + a_offset;
    if (!call.shape.trans_a) std::memcpy(to, source + row * lda, size_t(k));
    else for (int64_t i = 0; i < k; ++i) to[i] = source[i * lda + row];
  }
  for (int64_t i = 0; call.a_signed && i < k; ++i) to[i] ^= 0x80;
}

void s8_pack_columns(bool b_signed, const int8_t* b, int64_t ldb, bool trans, int64_t k, int64_t n,
                     int64_t width, int8_t* to) {
  // Unsigned values are kept less 128, which is a flip of the highest bit.
  const int8_t flip = b_signed ? 0 : int8_t(-128);
  const int64_t row_step = trans ? 1 : ldb, col_step = trans ? ldb : 1;
  for (int64_t first = 0; first < n; first += width) {
    const int64_t cols = std::min(width, n - first);
    for (int64_t row = 0; row < k; row += 2, to += 2 * width) {
      if (cols < width || row + 1 == k) std::memset(to, 0, size_t(2 * width));
      const int8_t* from = b + row * row_step + first * col_step;
      for (int64_t j = 0; j < cols; ++j) to[2 * j] = int8_t(from[j * col_step] ^ flip);
      if (row + 1 == k) continue;
      from += row_step;
      for (int64_t j = 0; j < cols; ++j) to[2 * j + 1] = int8_t(from[j * col_step] ^ flip);
    }
  }
}

}  // namespace rlx::cpu
