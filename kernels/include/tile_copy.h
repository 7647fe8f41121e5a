// Slices of an operand on their way from global to shared memory: 16 bytes at a time where rows
// are aligned, else 4 bytes or elements.
#pragma once

#include "kernels/include/async_copy.h"
#include "kernels/include/index.h"
#include "kernels/params/tile_product.h"

namespace rlx {

// A slice, `bytes` along k, of `extent` rows of A or columns of B: in shared memory lines of
// neighbours.
template <class S, int bytes, int extent, bool along_k> struct SliceShape {
  static constexpr int k = bytes / int(sizeof(S));
  static constexpr int piece = 16 / int(sizeof(S));
  static constexpr int lines = along_k ? extent : k, width = along_k ? k : extent;
  static constexpr int pitch = width + params::slice_pads[sizeof(S) == 4][along_k] / int(sizeof(S));
  static constexpr int size = lines * pitch;
};

// Where an operand of a block lies: its first line, the step to the next, and how many of its rows
// or columns and of k are inside.
template <class S> struct OperandPlace {
  const S* from;
  long long line, rows, depth;
};

// Copies slice after slice. `aligned`: a thread has the same 16 bytes of every few lines.
template <class Shape, class S, bool along_k, int threads, bool aligned> struct SliceCopy {
  static constexpr int runs = Shape::width / Shape::piece;
  static constexpr int each = threads / runs, whole = Shape::lines / each;
  static constexpr bool spare = whole == 0;  // some threads have no line
  static constexpr int passes = spare ? 1 : whole;
  static_assert(threads % runs == 0 && (spare || Shape::lines % each == 0) && passes <= 32);

  const S* from;
  long long pass, back;  // elements to the next line of this thread; to its first of the next slice
  int depth;             // of k that is left from this thread's place on
  unsigned inside = 0;   // a bit for each line that has rows or columns
  int to;

  __device__ SliceCopy(const OperandPlace<S>& place, int) {
    const int line = int(threadIdx.x) / runs, column = int(threadIdx.x) % runs * Shape::piece;
    from = place.from + (line * place.line + column);
    pass = each * place.line;
    back = Shape::k * (along_k ? 1 : place.line) - passes * pass;
    depth = int(place.depth) - (along_k ? column : line);
    to = line * Shape::pitch + column;
#pragma unroll
    for (int i = 0; i < passes; ++i) {
      inside |= unsigned((along_k ? line + i * each : column) < place.rows) << i;
    }
  }

  __device__ void copy(S* slice) {
    if (spare && to >= Shape::size) return;
#pragma unroll
    for (int i = 0; i < passes; ++i) {
      const bool there = (inside >> i & 1) != 0 && depth > (along_k ? 0 : i * each);
      async_copy<16>(slice + to + i * (each * Shape::pitch), from + i * pass, there);
    }
    from += passes * pass + back;
    depth -= Shape::k;
  }
};

// `run` bytes at once, 4 or an element: a thread copies every so many of them.
template <class Shape, class S, bool along_k, int threads>
struct SliceCopy<Shape, S, along_k, threads, false> {
  OperandPlace<S> place;
  int run;

  __device__ SliceCopy(const OperandPlace<S>& place, int run) : place(place), run(run) {}

  __device__ void copy(S* slice) {
    constexpr int word = 4 / int(sizeof(S));
    if (word == 1 || run == 4) copy_runs<word>(slice);
    else copy_runs<1>(slice);
    place.from += along_k ? Shape::k : Shape::k * place.line;
    place.depth -= Shape::k;
  }

 private:
  template <int chunk> __device__ void copy_runs(S* slice) const {
    constexpr int runs = Shape::width / chunk, all = Shape::lines * runs;
#pragma unroll 1
    for (int i = int(threadIdx.x); i < all; i += threads) {
      const int line = i / runs, column = i % runs * chunk;
      const bool there = along_k ? line < place.rows && column < place.depth
                                 : line < place.depth && column < place.rows;
      copy_elements<chunk>(slice + line * Shape::pitch + column,
                           place.from + (line * place.line + column), there);
    }
  }
};

// Fills `lines` rows of `width` elements, `chunk` at a time: find(line, column, from) says whether
// there are any, and where.
template <int lines, int width, int pitch, int chunk, int threads, class S, class Find>
RLX_FN void copy_lines(S* to, const Find& find) {
  constexpr int runs = width / chunk, all = lines * runs;
#pragma unroll 16
  for (int first = 0; first < all; first += threads) {
    const int i = first + int(threadIdx.x);
    if (all % threads != 0 && i >= all) break;
    const int line = i / runs, column = i % runs * chunk;
    const S* from = nullptr;
    const bool inside = find(line, column, from);
    copy_elements<chunk>(to + line * pitch + column, from, inside);
  }
}

}  // namespace rlx
