// Slices of an operand on their way from global to shared memory: 16 bytes at a time where rows
// are aligned, else 4 bytes or elements.
#pragma once

#include "kernels/include/async_copy.h"
#include "kernels/include/index.h"
#include "kernels/params/tile_product.h"

namespace rlx {

// A slice of `extent` rows of A or columns of B: in shared memory lines of neighbours.
template <class S, int extent, bool along_k> struct SliceShape {
  static constexpr int k = params::tile_slice / int(sizeof(S));
  static constexpr int piece = 16 / int(sizeof(S));
  static constexpr int lines = along_k ? extent : k, width = along_k ? k : extent;
  // Lines end in 16 bytes more, or 32 of floats, so that a warp reads from different banks.
  static constexpr int pitch = width + (sizeof(S) == 4 && !along_k ? 8 : piece);
  static constexpr int size = lines * pitch;
};

// Where an operand of a block lies: its first line, the step to the next, and how many of its rows
// or columns and of k are inside.
template <class S> struct OperandPlace {
  const S* from;
  long long line, rows, depth;
};

// Copies slice after slice. `aligned`: a thread has the same 16 bytes of every few lines.
template <class S, int extent, bool along_k, bool aligned> struct SliceCopy {
  using Shape = SliceShape<S, extent, along_k>;
  static constexpr int threads = params::tile_threads, runs = Shape::width / Shape::piece;
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
template <class S, int extent, bool along_k> struct SliceCopy<S, extent, along_k, false> {
  using Shape = SliceShape<S, extent, along_k>;
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
    for (int i = int(threadIdx.x); i < all; i += params::tile_threads) {
      const int line = i / runs, column = i % runs * chunk;
      const bool there = along_k ? line < place.rows && column < place.depth
                                 : line < place.depth && column < place.rows;
      copy_elements<chunk>(slice + line * Shape::pitch + column,
                           place.from + (line * place.line + column), there);
    }
  }
};

}  // namespace rlx
