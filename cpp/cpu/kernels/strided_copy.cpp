// Strided block copies: rows by memcpy where both sides are contiguous, else tiles of a matrix.
#include "cpu/kernels/strided_copy.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "cpu/team.h"

namespace rlx::cpu {
namespace {

constexpr int64_t tile = 16;          // rows and columns of a transposed tile: two cache lines
constexpr int64_t grain_bytes = 1 << 15;

struct Bytes16 {
  uint64_t low, high;
};

// Calls f with a value whose type has `size` bytes.
template <class F>
void by_size(int size, F&& f) {
  switch (size) {
    case 1: return f(uint8_t{});
    case 2: return f(uint16_t{});
    case 4: return f(uint32_t{});
    case 8: return f(uint64_t{});
    default: return f(Bytes16{});
  }
}

// Where block `index` of the outer axes starts in both tensors.
struct Start {
  int64_t from, to;
};

Start start_of(const StridedCopy& c, size_t outer, int64_t index) {
  Start s{c.from_offset, c.to_offset};
  for (size_t k = outer; k-- > 0;) {
    const int64_t i = index % c.extents[k];
    index /= c.extents[k];
    s.from += i * c.from[k];
    s.to += i * c.to[k];
  }
  return s;
}

template <class T>
void copy_row(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t n) {
  if (from_stride == 1 && to_stride == 1) {
    std::memcpy(to, from, size_t(n) * sizeof(T));
  } else if (to_stride == 1) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * from_stride];
  } else {
    for (int64_t i = 0; i < n; ++i) to[i * to_stride] = from[i * from_stride];
  }
}

// A rows x columns matrix whose columns are contiguous in `to` and whose rows are in `from`.
template <class T>
void copy_transposed(const T* from, int64_t from_row, int64_t from_column, T* to, int64_t to_row,
                     int64_t rows, int64_t columns) {
  for (int64_t r0 = 0; r0 < rows; r0 += tile) {
    const int64_t r1 = std::min(rows, r0 + tile);
    for (int64_t c0 = 0; c0 < columns; c0 += tile) {
      const int64_t c1 = std::min(columns, c0 + tile);
      for (int64_t r = r0; r < r1; ++r) {
        const T* source = from + r * from_row;
        T* target = to + r * to_row;
        for (int64_t c = c0; c < c1; ++c) target[c] = source[c * from_column];
      }
    }
  }
}

template <class T>
void run(const StridedCopy& c, const T* from, T* to, int threads) {
  const size_t rank = c.extents.size();
  if (rank == 0) {
    to[c.to_offset] = from[c.from_offset];
    return;
  }
  // The axis that is contiguous in `from`, when it is not the innermost, is tiled with it.
  const bool matrix = rank >= 2 && c.from[rank - 1] != 1 && c.to[rank - 1] == 1 &&
                      c.from[rank - 2] == 1;
  const size_t outer = rank - (matrix ? 2 : 1);
  const int64_t n = c.extents[rank - 1];
  int64_t blocks = 1;
  for (size_t k = 0; k < outer; ++k) blocks *= c.extents[k];
  const int64_t block = n * (matrix ? c.extents[rank - 2] : 1) * int64_t(sizeof(T));
  if (matrix && blocks < threads) {  // one large matrix: share its rows
    const int64_t rows = c.extents[rank - 2];
    for (int64_t b = 0; b < blocks; ++b) {
      const Start s = start_of(c, outer, b);
      parallel_for(threads, rows, std::max<int64_t>(tile, grain_bytes * rows / block),
                   [&](int64_t begin, int64_t end) {
        copy_transposed(from + s.from + begin, 1, c.from[rank - 1],
                        to + s.to + begin * c.to[rank - 2], c.to[rank - 2], end - begin, n);
      });
    }
    return;
  }
  parallel_for(threads, blocks, std::max<int64_t>(1, grain_bytes / std::max<int64_t>(block, 1)),
               [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const Start s = start_of(c, outer, b);
      if (matrix) {
        copy_transposed(from + s.from, 1, c.from[rank - 1], to + s.to, c.to[rank - 2],
                        c.extents[rank - 2], n);
      } else {
        copy_row(from + s.from, c.from[rank - 1], to + s.to, c.to[rank - 1], n);
      }
    }
  });
}

}  // namespace

StridedCopy make_strided_copy(Dims extents, Dims from, Dims to, int64_t from_offset,
                              int64_t to_offset, size_t element_size) {
  StridedCopy c;
  c.size = int(element_size);
  c.from_offset = from_offset;
  c.to_offset = to_offset;
  SmallVector<int, 6> order;
  for (size_t k = 0; k < extents.size(); ++k) {
    if (extents[k] == 0) c.empty = true;
    if (extents[k] != 1) order.push_back(int(k));
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return to[size_t(a)] > to[size_t(b)]; });
  for (int axis : order) {
    const size_t k = size_t(axis);
    const bool merges = !c.extents.empty() && c.from.back() == extents[k] * from[k] &&
                        c.to.back() == extents[k] * to[k];
    if (merges) {
      c.extents.back() *= extents[k];
      c.from.back() = from[k];
      c.to.back() = to[k];
    } else {
      c.extents.push_back(extents[k]);
      c.from.push_back(from[k]);
      c.to.push_back(to[k]);
    }
  }
  // The axis contiguous in `from` moves beside the innermost, where the two are tiled.
  const size_t rank = c.extents.size();
  for (size_t k = 0; k + 2 < rank; ++k) {
    if (c.from[k] == 1 && c.from[rank - 1] != 1) {
      for (size_t j = k; j + 2 < rank; ++j) {
        std::swap(c.extents[j], c.extents[j + 1]);
        std::swap(c.from[j], c.from[j + 1]);
        std::swap(c.to[j], c.to[j + 1]);
      }
      break;
    }
  }
  return c;
}

void run_strided_copy(const StridedCopy& copy, const void* from, void* to, int threads) {
  if (copy.empty) return;
  by_size(copy.size, [&](auto tag) {
    using T = decltype(tag);
    run(copy, static_cast<const T*>(from), static_cast<T*>(to), threads);
  });
}

}  // namespace rlx::cpu
