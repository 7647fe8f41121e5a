// GridSample on the CPU: the taps of a run of places, then channel after channel along the run.
#pragma once

#include <algorithm>
#include <array>

#include "cpu/kernels/map.h"
#include "kernels/map/grid_sample.h"
#include "kernels/params/map.h"

namespace rlx::cpu {
namespace {

// One channel at `n` places. Nearly all have the four taps of a bilinear sample inside the image.
template <class T, class W, int most>
void sample_run(const T* plane, const scalar::Taps<W, most>* taps, int64_t n, T* to) {
  for (int64_t i = 0; i < n; ++i) {
    W sum = 0;
    if (taps[i].count == 4) {
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) sum += taps[i].weight[k] * load(plane + taps[i].offset[k]);
    } else {
      sum = scalar::weighted_sum(plane, taps[i]);
    }
    to[i] = Element<T>::store(sum);
  }
}

// Items [begin, end): see map::grid_sample.
template <class T, int points, int most>
void grid_items(const params::Map& p, int64_t begin, int64_t end) {
  constexpr int64_t tile = 512 / most;  // places whose taps stay in the first-level cache
  const params::MapOperand &x = p.operands[0], &y = p.operands[2];
  const int64_t image = map::grid_extent(x), places = map::grid_extent(y), channels = x.shape[1];
  const int64_t blocks = (channels + map::grid_channels - 1) / map::grid_channels;
  const auto padding = scalar::Padding(p.ints[1]);
  const bool usual = x.rank == 4 && padding == scalar::Padding::zeros;
  scalar::Taps<ComputeOf<T>, most> taps[tile];
  while (begin < end) {
    const int64_t row = begin / places, place = begin % places;
    const int64_t batch = row / blocks, first = row % blocks * map::grid_channels;
    const int64_t n = std::min({tile, end - begin, places - place});
    for (int64_t i = 0; i < n; ++i) {
      const int64_t entry = batch * places + place + i;
      if (usual) map::grid_taps<points>(p, entry, 2, scalar::Padding::zeros, taps[i]);
      else map::grid_taps<points>(p, entry, x.rank - 2, padding, taps[i]);
    }
    const int64_t last = std::min<int64_t>(first + map::grid_channels, channels);
    for (int64_t c = batch * channels + first; c < batch * channels + last; ++c) {
      const T* plane = static_cast<const T*>(x.data) + c * image;
      sample_run(plane, taps, n, static_cast<T*>(y.data) + c * places + place);
    }
    begin += n;
  }
}

template <class T>
void grid_loop(const params::Map& p, int64_t begin, int64_t end) {
  if (p.ints[0] == 4) grid_items<T, 4, 64>(p, begin, end);
  else if (p.operands[0].rank == 5) grid_items<T, 2, 8>(p, begin, end);
  else grid_items<T, 2, 4>(p, begin, end);
}

constexpr std::array<MapEntry, 4> grid_entries = {{
    {"grid_sample", DType::float32, &grid_loop<float>},
    {"grid_sample", DType::float64, &grid_loop<double>},
    {"grid_sample", DType::float16, &grid_loop<F16>},
    {"grid_sample", DType::bfloat16, &grid_loop<BF16>},
}};

}  // namespace
}  // namespace rlx::cpu
