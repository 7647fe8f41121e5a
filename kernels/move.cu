// Strided copies: neighbours along the innermost axis as words, transposes through a tile.
#include "kernels/include/index.h"
#include "kernels/include/vector.h"
#include "kernels/params/move.h"

namespace {

using Word = RLX_WORD;  // one element, or several that lie together on both sides
using Index = RLX_INDEX;

}  // namespace

#if RLX_FORM == 0
// All strides in words.
extern "C" __global__ void move(const rlx::params::Move p) {
  const Word* x = static_cast<const Word*>(p.x);
  Word* y = static_cast<Word*>(p.y);
  if (x == y) return;  // the plan let y have the memory of x
  const Index step = Index(rlx::thread_count());
  for (Index i = Index(rlx::thread_rank()); i < Index(p.count); i += step) {
    Index rest = i, from = 0, to = 0;
#pragma unroll
    for (int k = RLX_AXES - 1; k >= 0; --k) {
      const Index c = k == 0 ? rest : rlx::split(rest, p.extents[k]);
      from += c * Index(p.from_strides[k]);
      to += c * Index(p.to_strides[k]);
    }
    y[to] = x[from];
  }
}
#elif RLX_FORM == 1
// The last two axes: x runs along the first of them, y along the second.
extern "C" __global__ void __launch_bounds__(256) move(const rlx::params::Move p) {
  constexpr int tile = 32, rows = 8, last = RLX_AXES - 1;
  __shared__ Word cells[tile][tile + 1];
  const Index height = Index(p.extents[last - 1].value), width = Index(p.extents[last].value);
  const Index across = (width + tile - 1) / tile, down = (height + tile - 1) / tile;
  Index rest = Index(rlx::block_rank());
  const Index tiles = rest / across;
  const Index left = (rest - tiles * across) * tile;
  rest = tiles / down;
  const Index top = (tiles - rest * down) * tile;
  if (rest >= Index(p.count) / (height * width)) return;
  Index from = 0, to = 0;
#pragma unroll
  for (int k = last - 2; k >= 0; --k) {
    const Index c = k == 0 ? rest : rlx::split(rest, p.extents[k]);
    from += c * Index(p.from_strides[k]);
    to += c * Index(p.to_strides[k]);
  }
  const Word* x = static_cast<const Word*>(p.x) + from;
  Word* y = static_cast<Word*>(p.y) + to;
  for (int k = threadIdx.y; k < tile; k += rows) {
    const Index r = top + threadIdx.x, c = left + k;
    if (r < height && c < width) cells[k][threadIdx.x] = x[r + c * Index(p.from_strides[last])];
  }
  __syncthreads();
  for (int k = threadIdx.y; k < tile; k += rows) {
    const Index r = top + k, c = left + threadIdx.x;
    if (r < height && c < width) {
      y[r * Index(p.to_strides[last - 1]) + c] = cells[threadIdx.x][k];
    }
  }
}
#endif
