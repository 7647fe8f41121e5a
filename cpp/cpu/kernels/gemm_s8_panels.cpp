// Packs small weights into panels for products on bytes, or finds that too many are too large.
#include "cpu/kernels/gemm_s8_panels.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "cpu/kernels/gemm_s8_bytes.h"
#include "cpu/team.h"

namespace rlx::cpu {
namespace {

constexpr int64_t lanes = S8Panel::lanes, vectors = S8Panel::vectors, width = S8Panel::width;
constexpr int budget = 128;  // of one sign's weights that meet in one 16-bit sum

// How long a row of B takes at each depth beside one in the other layout (measured on a Zen).
struct Depth {
  int64_t rows;
  double time;
};
constexpr Depth depths[] = {{s8_depths[0], 0.64}, {s8_depths[1], 0.79}};
constexpr double extra_time = 1.3;  // of a further step, which reads B for one vector at a time
constexpr int64_t steps_for_extra = 4;  // a further step for so many bounds the memory

// B, [k, n], and what is taken off its numbers.
struct Source {
  const int8_t* b;
  int64_t row_step, col_step, k, n;
  bool is_signed;
  int shift;
};

// f(T{}) for the type of the numbers.
template <class F>
auto with_type(const Source& source, F f) {
  return source.is_signed ? f(int8_t{}) : f(uint8_t{});
}

// Rows of a vector's columns, less the shift.
typedef int16_t Row __attribute__((vector_size(lanes * sizeof(int16_t))));
using Step = Row[s8_deepest];

template <class T>
void read_rows(const T* from, const Source& source, int64_t rows, int64_t cols, Step& step) {
  if (cols == lanes && source.col_step == 1) {
    for (int64_t i = 0; i < rows; ++i, from += source.row_step) {
      for (int64_t j = 0; j < lanes; ++j) step[i][j] = int16_t(from[j] - source.shift);
    }
    return;
  }
  std::memset(step, 0, sizeof(step));
  for (int64_t j = 0; j < cols; ++j, from += source.col_step) {
    for (int64_t i = 0; i < rows; ++i) {
      step[i][j] = int16_t(from[i * source.row_step] - source.shift);
    }
  }
}

void read_step(const Source& source, int64_t row, int64_t depth, int64_t col, Step& step) {
  const int64_t rows = std::min(depth, source.k - row), cols = std::min(lanes, source.n - col);
  if (rows < depth || cols <= 0) std::memset(step, 0, sizeof(step));
  if (cols <= 0) return;
  with_type(source, [&]<class T>(T) {
    const auto* from = reinterpret_cast<const T*>(source.b);
    read_rows(from + row * source.row_step + col * source.col_step, source, rows, cols, step);
  });
}

// What meets in the 16-bit sums of each column. Of each four rows the first two meet in one sum,
// the others in another.
struct Load {
  Row plus[2] = {}, minus[2] = {}, most = {};

  void add(const Step& step, int64_t first, int64_t end) {
    for (int64_t row = first; row < end; ++row) {
      const Row value = step[row], up = value > 0;
      plus[row / 2 % 2] += value & up;
      minus[row / 2 % 2] -= value & ~up;
      most = value > most ? value : most;
    }
  }
  bool fits() const {
    const Row over = (plus[0] > budget) | (plus[1] > budget) | (minus[0] > budget) |
                     (minus[1] > budget) | (most > 127);
    uint64_t words[2];
    static_assert(sizeof(words) == sizeof(over));
    std::memcpy(words, &over, sizeof(words));
    return (words[0] | words[1]) == 0;
  }
};

bool fits(const Step& step, int64_t first, int64_t end) {
  Load load;
  load.add(step, first, end);
  return load.fits();
}

// Writes rows [first, end) of a step that fits, runs of four so many bytes apart.
void copy_step(const Step& step, int64_t first, int64_t end, int64_t run_bytes, int8_t* to) {
  for (int64_t row = first; row < end; row += 4, to += run_bytes) {
    for (int64_t j = 0; j < lanes; ++j) {
      for (int64_t i = 0; i < 4; ++i) to[j * 4 + i] = int8_t(step[row + i][j]);
    }
  }
}

// Writes what the sums can bear of them and takes it off.
void write_part(Step& step, int64_t first, int64_t end, int64_t run_bytes, int8_t* to) {
  Step part = {};
  for (int64_t j = 0; j < lanes; ++j) {
    int plus[2] = {budget, budget}, minus[2] = {budget, budget};
    for (int64_t row = first; row < end; ++row) {
      int &up = plus[row / 2 % 2], &down = minus[row / 2 % 2];
      const int value = std::clamp<int>(step[row][j], -down, std::min(up, 127));
      up -= std::max(value, 0);
      down += std::min(value, 0);
      part[row][j] = int16_t(value);
      step[row][j] = int16_t(step[row][j] - value);
    }
  }
  copy_step(part, first, end, run_bytes, to);
}

// The further steps that rows of a step need which do not fit.
int64_t count_parts(const Step& step, int64_t first, int64_t end) {
  int8_t unused[s8_deepest * lanes];
  Step left;
  std::memcpy(left, step, sizeof(left));
  int64_t count = 0;
  do {
    write_part(left, first, end, 4 * lanes, unused);
    ++count;
  } while (!fits(left, first, end));
  return count;
}

// Further steps of a vector's columns at each depth; counted until they are more than `most`.
struct Extra {
  int64_t count[std::size(depths)] = {};
};

Extra count_vector(const Source& source, int64_t col, const Extra& most) {
  Extra extra;
  for (int64_t row = 0; row < source.k; row += s8_deepest) {
    bool enough = true;
    Step step;
    read_step(source, row, s8_deepest, col, step);
    for (size_t d = 0; d < std::size(depths); ++d) {
      if (extra.count[d] > most.count[d]) continue;
      enough = false;
      for (int64_t first = 0; first < s8_deepest; first += depths[d].rows) {
        const int64_t end = first + depths[d].rows;
        if (!fits(step, first, end)) extra.count[d] += count_parts(step, first, end);
      }
    }
    if (enough) break;
  }
  return extra;
}

// Packs a vector's columns: its part of the steps at `to`, the further ones, the columns' sums.
void pack_vector(const Source& source, const S8PanelsLayout& layout, int64_t col, int8_t* to,
                 int8_t* extra, int32_t* extra_rows, int32_t* sums) {
  const int64_t depth = layout.depth;
  for (int64_t s = 0; s < layout.steps; ++s, to += depth * width) {
    Step step;
    read_step(source, s * depth, depth, col, step);
    for (int64_t row = 0; row < depth; ++row) {
      for (int64_t j = 0; j < lanes; ++j) sums[j] += step[row][j];
    }
    if (fits(step, 0, depth)) {
      copy_step(step, 0, depth, 4 * width, to);
      continue;
    }
    write_part(step, 0, depth, 4 * width, to);
    for (bool whole = false; !whole; extra += layout.extra_bytes()) {
      whole = fits(step, 0, depth);
      write_part(step, 0, depth, 4 * lanes, extra);
      *extra_rows++ = int32_t(s * depth);
    }
  }
}

int64_t panels_at_once(int64_t k) { return 65536 / (k * width + 1) + 1; }

Extra most_worth(int64_t k, int64_t n) {
  Extra most;
  for (size_t d = 0; d < std::size(depths); ++d) {
    const S8PanelsLayout layout(depths[d].rows, k, n);
    most.count[d] = layout.panels * vectors * layout.steps / steps_for_extra;
  }
  return most;
}

// The further steps of every vector, and how many there are of all.
std::vector<Extra> count_extra(const Source& source, const Extra& most, Extra& total,
                               int threads) {
  const int64_t panels = S8PanelsLayout(s8_deepest, source.k, source.n).panels;
  std::vector<Extra> each(size_t(panels * vectors));
  std::atomic<int64_t> found[std::size(depths)] = {};
  parallel_for(threads, panels, panels_at_once(source.k), [&](int64_t begin, int64_t end) {
    for (int64_t v = begin * vectors; v < end * vectors; ++v) {
      Extra left = most;
      for (size_t d = 0; d < std::size(depths); ++d) left.count[d] -= found[d];
      each[size_t(v)] = count_vector(source, v * lanes, left);
      for (size_t d = 0; d < std::size(depths); ++d) found[d] += each[size_t(v)].count[d];
    }
  });
  for (size_t d = 0; d < std::size(depths); ++d) total.count[d] = found[d];
  return each;
}

// The depth that takes least time, or none where the other layout does.
const Depth* best_depth(const Source& source, const Extra& most, const Extra& extra) {
  const Depth* best = nullptr;
  double least = 1;
  for (size_t d = 0; d < std::size(depths); ++d) {
    if (extra.count[d] > most.count[d]) continue;
    const S8PanelsLayout layout(depths[d].rows, source.k, source.n);
    const double steps = double(std::max<int64_t>(layout.panels * vectors * layout.steps, 1));
    const double time = depths[d].time * (1 + extra_time * double(extra.count[d]) / steps);
    if (time >= least) continue;
    least = time;
    best = &depths[d];
  }
  return best;
}

void write_panel(const Source& source, const S8PanelsLayout& layout, int64_t p,
                 const S8Panel& panel, int8_t* to) {
  int8_t* steps = to + layout.panels_at() + p * layout.panel_bytes();
  int8_t* extra = to + panel.extra_at;
  auto* rows = reinterpret_cast<int32_t*>(
      extra + (panel.extra[0] + panel.extra[1]) * layout.extra_bytes());
  auto* sums = reinterpret_cast<int32_t*>(to) + p * width;
  std::fill_n(sums, width, 0);
  for (int64_t v = 0; v < vectors; ++v) {
    pack_vector(source, layout, p * width + v * lanes, steps + v * 4 * lanes, extra, rows,
                sums + v * lanes);
    extra += panel.extra[v] * layout.extra_bytes();
    rows += panel.extra[v];
  }
}

void write_panels(const Source& source, const S8PanelsLayout& layout, size_t d,
                  const std::vector<Extra>& extra, int8_t* to, int threads) {
  auto* table = reinterpret_cast<S8Panel*>(to + layout.table_at());
  int64_t at = layout.rest_at();
  for (int64_t p = 0; p < layout.panels; ++p) {
    S8Panel& panel = *new (table + p) S8Panel{at};
    for (int64_t v = 0; v < vectors; ++v) {
      panel.extra[v] = int32_t(extra[size_t(p * vectors + v)].count[d]);
    }
    at += layout.rest_bytes(panel.extra[0] + panel.extra[1]);
  }
  parallel_for(threads, layout.panels, panels_at_once(source.k), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) write_panel(source, layout, p, table[p], to);
  });
}

// Unsigned weights lie around their zero point, which is seldom 128: their mean is near it.
int mean(const Source& source) {
  const bool rows_inside = source.row_step == 1;  // the order of memory
  const int64_t lines = rows_inside ? source.n : source.k;
  const int64_t count = rows_inside ? source.k : source.n;
  const int64_t ld = rows_inside ? source.col_step : source.row_step;
  int64_t sum = 0;
  for (int64_t line = 0; line < lines; ++line) {
    const auto* from = reinterpret_cast<const uint8_t*>(source.b) + line * ld;
    for (int64_t i = 0; i < count; ++i) sum += from[i];
  }
  const int64_t all = std::max<int64_t>(lines * count, 1);
  return int((sum + all / 2) / all);
}

}  // namespace

int64_t s8_bytes_bound(int64_t k, int64_t n) {
  int64_t bytes = 0;
  for (const Depth& depth : depths) {
    const S8PanelsLayout layout(depth.rows, k, n);
    // On average over the panels, each of which is rounded up to 64 bytes.
    const int64_t extra = vectors * layout.steps / steps_for_extra + 2;
    bytes = std::max(bytes, layout.rest_at() + layout.panels * layout.rest_bytes(extra));
  }
  return bytes;
}

bool s8_pack_bytes(bool b_signed, const int8_t* b, int64_t ldb, bool trans, int64_t k, int64_t n,
                   S8Header& header, int8_t* to, int threads) {
  Source source{b, trans ? 1 : ldb, trans ? ldb : 1, k, n, b_signed, 0};
  if (!b_signed) source.shift = mean(source);
  Extra total;
  const Extra most = most_worth(k, n);
  const std::vector<Extra> extra = count_extra(source, most, total, threads);
  const Depth* best = best_depth(source, most, total);
  if (!best) return false;
  header.depth = int32_t(best->rows);
  header.shift = source.shift;
  write_panels(source, S8PanelsLayout(best->rows, k, n), size_t(best - depths), extra, to, threads);
  return true;
}

}  // namespace rlx::cpu
