// Products of a few rows by quantised weights, at the speed of memory: codes become floats in
// registers, and each block's sum is scaled once.
#pragma once

#include <cstring>
#include <utility>

#include "core/packed.h"
#include "cpu/kernels/gemm_vector.h"
#include "cpu/kernels/quantised_kernels.h"

namespace rlx::cpu::quantised {

using tile::load;
using tile::Vec;

// Signed codes count from the lowest value, as unsigned ones do: flipping the sign bit of each.
static inline uint8_t flipped(DType type) {
  switch (type) {
    case DType::int8: return 0x80;
    case DType::int4: return 0x88;
    case DType::int2: return 0xaa;
    default: return 0;
  }
}
static inline float lowest(DType type) {
  switch (type) {
    case DType::int8: return 128;
    case DType::int4: return 8;
    case DType::int2: return 2;
    default: return 0;
  }
}

static inline float scale_at(const Quantised& q, int64_t place) {
  if (q.scale_type == DType::float32) return static_cast<const float*>(q.scales)[place];
  return q.scale(place);
}
static inline float zero_at(const Quantised& q, int64_t place) {
  if (!q.zeros) return 0;
  if (q.zero_type == DType::uint8) {
    return float(static_cast<const uint8_t*>(q.zeros)[q.one_zero ? 0 : place]);
  }
  return q.zero(place);
}

template <class To, class From>
[[gnu::always_inline]] static inline To converted(From from) {
  return __builtin_convertvector(from, To);
}

// A chunk: `lanes` bytes, whose part p holds bits [p * bits, (p + 1) * bits) of every byte.
template <int lanes, int bits, bool e2m1>
struct Chunk {
  static constexpr int parts = 8 / bits;
  using Bytes = Vec<uint8_t, lanes>;
  using Words = Vec<int32_t, lanes * 4>;
  using Floats = Vec<float, lanes * 4>;
  Words words;

  [[gnu::always_inline]] Chunk(const std::byte* from, uint8_t flip) {
    Bytes bytes;
    std::memcpy(&bytes, from, lanes);
    bytes ^= flip;
    words = converted<Words>(bytes);
  }

  template <int part>
  [[gnu::always_inline]] Floats values() const {
    Words codes = words >> (part * bits);
    if constexpr (part + 1 < parts) codes &= (1 << bits) - 1;
    if constexpr (!e2m1) return converted<Floats>(codes);
    // Twice the value is whole: 0 1 2 3 | 4 6 | 8 12.
    const Words size = codes & 7, exponent = size >> 1, fraction = size & 1;
    const Words shift = exponent - (exponent > 0 ? Words{} + 1 : Words{});
    const Words twice = ((exponent > 0 ? Words{} + 2 : Words{}) + fraction) << shift;
    const Words value = (codes & 8) != 0 ? -twice : twice;
    return converted<Floats>(value);
  }
};

// Adds a chunk of each column, whose bytes stand at from[c], times the activations at a.
template <class C, int lanes, int rows, int cols, int part = 0>
[[gnu::always_inline]] static inline void add_parts(const C (&chunk)[cols], const float* a,
                                                    int64_t lda,
                                                    typename C::Floats (&sum)[rows][cols]) {
  typename C::Floats left[rows];
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) left[r] = load<float, lanes * 4>(a + r * lda + part * lanes);
#pragma GCC unroll 4
  for (int c = 0; c < cols; ++c) {
    const typename C::Floats right = chunk[c].template values<part>();
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) sum[r][c] += left[r] * right;
  }
  if constexpr (part + 1 < C::parts) {
    add_parts<C, lanes, rows, cols, part + 1>(chunk, a, lda, sum);
  }
}

// The sums over bytes [begin, end) of each column.
template <class C, int lanes, int rows, int cols>
[[gnu::always_inline]] static inline void block_sums(const GemvBlock& g, uint8_t flip,
                                                     const std::byte* const (&codes)[cols],
                                                     int64_t begin, int64_t end,
                                                     typename C::Floats (&sum)[rows][cols]) {
  const auto add = [&]<size_t... c>(std::index_sequence<c...>, const std::byte* const* from,
                                    int64_t at) __attribute__((always_inline)) {
    const C chunk[cols] = {C(from[c], flip)...};
    add_parts<C, lanes, rows, cols>(chunk, g.a + at * C::parts, g.lda, sum);
  };
  const std::byte* from[cols];
  int64_t at = begin;
  for (; at + lanes <= end; at += lanes) {
    for (int c = 0; c < cols; ++c) from[c] = codes[c] + at;
    add(std::make_index_sequence<cols>{}, from, at);
  }
  if (at == end) return;
  std::byte rest[cols][lanes] = {};  // what lies behind the row is not ours to read
  for (int c = 0; c < cols; ++c) {
    std::memcpy(rest[c], codes[c] + at, size_t(end - at));
    from[c] = rest[c];
  }
  add(std::make_index_sequence<cols>{}, from, at);
}

template <int lanes, int bits, bool e2m1, int rows, int cols>
static void columns(const GemvBlock& g, int64_t n0) {
  using C = Chunk<lanes, bits, e2m1>;
  using Floats = typename C::Floats;
  const Quantised& q = g.b;
  const uint8_t flip = flipped(q.type);
  const float least = lowest(q.type), unit = e2m1 ? 0.5f : 1.0f;
  Floats total[rows][cols] = {};
  float off[rows][cols] = {};
  const std::byte* codes[cols];
  int64_t first[cols];  // scale of each column
  for (int c = 0; c < cols; ++c) {
    codes[c] = q.codes + (n0 + c) * q.row_bytes;
    first[c] = q.place(n0 + c, 0);
  }
  const int64_t block = q.block_k < q.k ? q.block_k : q.k;
  for (int64_t i = 0; i < g.blocks; ++i) {
    const int64_t begin = i * block * bits / 8;
    const int64_t values = i + 1 == g.blocks ? q.k - i * block : block;
    Floats sum[rows][cols] = {};
    block_sums<C, lanes, rows, cols>(g, flip, codes, begin, begin + (values * bits + 7) / 8, sum);
    for (int c = 0; c < cols; ++c) {
      const float scale = scale_at(q, first[c] + i) * unit;
      const float zero = (zero_at(q, first[c] + i) + least) * scale;
      for (int r = 0; r < rows; ++r) {
        total[r][c] += sum[r][c] * scale;
        if constexpr (!e2m1) off[r][c] += zero * g.sums[r * g.blocks + i];
      }
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < cols; ++c) {
      float y = 0;
      for (int l = 0; l < lanes; ++l) y += total[r][c][l];
      g.y[r * g.ldy + n0 + c] = (y - off[r][c]) * g.alpha;
    }
  }
}

template <int lanes, int bits, bool e2m1, int rows>
static void range(const GemvBlock& g, int64_t begin, int64_t end) {
  constexpr int together = rows == 1 ? 4 : 2;
  int64_t n = begin;
  for (; n + together <= end; n += together) columns<lanes, bits, e2m1, rows, together>(g, n);
  for (; n < end; ++n) columns<lanes, bits, e2m1, rows, 1>(g, n);
}

template <int lanes, int bits, bool e2m1>
static void any_rows(const GemvBlock& g, int64_t begin, int64_t end) {
  switch (g.rows) {
    case 1: return range<lanes, bits, e2m1, 1>(g, begin, end);
    case 2: return range<lanes, bits, e2m1, 2>(g, begin, end);
    case 3: return range<lanes, bits, e2m1, 3>(g, begin, end);
    default: return range<lanes, bits, e2m1, 4>(g, begin, end);
  }
}

template <int lanes>
constexpr QuantisedTable table() {
  return {lanes, any_rows<lanes, 2, false>, any_rows<lanes, 4, false>, any_rows<lanes, 8, false>,
          any_rows<lanes, 4, true>};
}

}  // namespace rlx::cpu::quantised
