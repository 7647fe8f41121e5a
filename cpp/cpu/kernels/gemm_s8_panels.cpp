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
constexpr int64_t deepest = 16;
constexpr int budget = 128;  // of one sign's weights that meet in one 16-bit sum

// Of the depths, how long a row of B takes beside one in the other layout (measured on a Zen), and
// how many further steps are worth it, for each 16 of the matrix: a quarter bounds the memory.
struct Depth {
  int64_t rows;
  double time;
};
constexpr Depth depths[] = {{16, 0.64}, {8, 0.79}};
constexpr double extra_time = 1.3;  // of a further step, which reads B for one vector at a time
constexpr int64_t extra_of_16 = 4;

struct Source {
  const int8_t* b;
  int64_t row_step, col_step, k, n;
  bool is_signed;
  int shift;

  int number(int64_t row, int64_t col) const {
    const int8_t byte = b[row * row_step + col * col_step];
    return is_signed ? int{byte} : int{uint8_t(byte)};
  }
};

// Rows of a vector's columns, less the shift.
using Step = int16_t[deepest][lanes];

void read_step(const Source& source, int64_t row, int64_t depth, int64_t col, Step& step) {
  std::memset(step, 0, sizeof(step));
  const int64_t rows = std::min(depth, source.k - row), cols = std::min(lanes, source.n - col);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      step[i][j] = int16_t(source.number(row + i, col + j) - source.shift);
    }
  }
}

// Of each four rows of a column the first two meet in one sum, the others in another.
bool fits(const Step& step, int64_t depth) {
  int16_t most = 0;
  for (int64_t first : {0, 2}) {
    int16_t plus[lanes] = {}, minus[lanes] = {};
    for (int64_t row = first; row < depth; row += row % 2 ? 3 : 1) {
      for (int64_t j = 0; j < lanes; ++j) {
        const int16_t value = step[row][j];
        plus[j] = int16_t(plus[j] + std::max<int16_t>(value, 0));
        minus[j] = int16_t(minus[j] - std::min<int16_t>(value, 0));
        most = std::max(most, int16_t(value + 1));  // 128 is no signed byte
      }
    }
    for (int64_t j = 0; j < lanes; ++j) most = std::max({most, plus[j], minus[j]});
  }
  return most <= budget;
}

// Writes what the sums can bear of a step, runs so many bytes apart, and takes it off.
void write_step(Step& step, int64_t depth, int64_t run_bytes, int8_t* to) {
  for (int64_t j = 0; j < lanes; ++j) {
    int plus[2] = {budget, budget}, minus[2] = {budget, budget};
    for (int64_t row = 0; row < depth; ++row) {
      int &up = plus[row / 2 % 2], &down = minus[row / 2 % 2];
      const int value = std::clamp<int>(step[row][j], -down, std::min(up, 127));
      up -= std::max(value, 0);
      down += std::min(value, 0);
      step[row][j] = int16_t(step[row][j] - value);
      to[row / 4 * run_bytes + j * 4 + row % 4] = int8_t(value);
    }
  }
}

// Packs a vector's columns: its part of the steps at `to`, and the further ones, of which there
// may be `most`. Returns how many there are; with `to` null it only counts them.
int64_t pack_vector(const Source& source, const S8PanelsLayout& layout, int64_t col, int8_t* to,
                    int8_t* extra, int32_t* extra_rows, int64_t most) {
  int8_t unused[deepest * width];
  int64_t count = 0;
  for (int64_t s = 0; s < layout.steps && count <= most; ++s) {
    Step step;
    read_step(source, s * layout.depth, layout.depth, col, step);
    bool whole = fits(step, layout.depth);
    if (to) write_step(step, layout.depth, 4 * width, to + s * layout.depth * width);
    else if (!whole) write_step(step, layout.depth, 4 * width, unused);
    while (!whole) {
      whole = fits(step, layout.depth);
      write_step(step, layout.depth, 4 * lanes,
                 to ? extra + count * layout.extra_bytes() : unused);
      if (to) extra_rows[count] = int32_t(s * layout.depth);
      ++count;
    }
  }
  return count;
}

int64_t panels_at_once(int64_t k) { return 65536 / (k * width + 1) + 1; }

// Counts the further steps of each panel; false once there are more than is worth it.
bool count_extra(const Source& source, const S8PanelsLayout& layout, std::vector<S8Panel>& table,
                 int64_t& total, int threads) {
  const int64_t most = layout.panels * vectors * layout.steps * extra_of_16 / 16;
  std::atomic<int64_t> found = 0;
  parallel_for(threads, layout.panels, panels_at_once(source.k), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      for (int64_t v = 0; v < vectors && found <= most; ++v) {
        const int64_t count = pack_vector(source, layout, p * width + v * lanes, nullptr, nullptr,
                                          nullptr, most);
        table[size_t(p)].extra[v] = int32_t(count);
        found += count;
      }
    }
  });
  total = found;
  return found <= most;
}

void write_panel(const Source& source, const S8PanelsLayout& layout, int64_t p,
                 const S8Panel& panel, int8_t* to) {
  int8_t* steps = to + layout.panels_at() + p * layout.panel_bytes();
  int8_t* extra = to + panel.extra_at;
  auto* rows = reinterpret_cast<int32_t*>(
      extra + (panel.extra[0] + panel.extra[1]) * layout.extra_bytes());
  for (int64_t v = 0; v < vectors; ++v) {
    pack_vector(source, layout, p * width + v * lanes, steps + v * 4 * lanes, extra, rows,
                panel.extra[v]);
    extra += panel.extra[v] * layout.extra_bytes();
    rows += panel.extra[v];
  }
}

void write_panels(const Source& source, const S8PanelsLayout& layout, std::vector<S8Panel>& table,
                  int8_t* to, int threads) {
  int64_t at = layout.rest_at();
  for (S8Panel& panel : table) {
    panel.extra_at = at;
    at += layout.rest_bytes(panel.extra[0] + panel.extra[1]);
  }
  std::copy(table.begin(), table.end(), reinterpret_cast<S8Panel*>(to + layout.table_at()));
  auto* sums = reinterpret_cast<int32_t*>(to);
  std::fill_n(sums, layout.panels * width, 0);
  parallel_for(threads, layout.panels, panels_at_once(source.k), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      write_panel(source, layout, p, table[size_t(p)], to);
      const int64_t last = std::min(p * width + width, source.n);
      for (int64_t row = 0; row < source.k; ++row) {
        for (int64_t col = p * width; col < last; ++col) {
          sums[col] += source.number(row, col) - source.shift;
        }
      }
    }
  });
}

// Unsigned weights lie around their zero point, which is seldom 128: their mean is near it.
int mean(const Source& source) {
  int64_t sum = 0;
  if (source.row_step == 1) {  // in the order of memory
    for (int64_t col = 0; col < source.n; ++col) {
      for (int64_t row = 0; row < source.k; ++row) sum += source.number(row, col);
    }
  } else {
    for (int64_t row = 0; row < source.k; ++row) {
      for (int64_t col = 0; col < source.n; ++col) sum += source.number(row, col);
    }
  }
  const int64_t count = std::max<int64_t>(source.k * source.n, 1);
  return int((sum + count / 2) / count);
}

}  // namespace

int64_t s8_bytes_bound(int64_t k, int64_t n) {
  int64_t bytes = 0;
  for (const Depth& depth : depths) {
    const S8PanelsLayout layout(depth.rows, k, n);
    const int64_t extra = vectors * layout.steps * extra_of_16 / 16 + 1;
    bytes = std::max(bytes, layout.rest_at() + layout.panels * layout.rest_bytes(extra));
  }
  return bytes;
}

bool s8_pack_bytes(bool b_signed, const int8_t* b, int64_t ldb, bool trans, int64_t k, int64_t n,
                   S8Header& header, int8_t* to, int threads) {
  Source source{b, trans ? 1 : ldb, trans ? ldb : 1, k, n, b_signed, 0};
  if (!b_signed) source.shift = mean(source);
  std::vector<S8Panel> best;
  double least = 1;
  for (const Depth& depth : depths) {
    const S8PanelsLayout layout(depth.rows, k, n);
    std::vector<S8Panel> table(size_t(layout.panels));
    int64_t extra = 0;
    if (!count_extra(source, layout, table, extra, threads)) continue;
    const double steps = double(std::max<int64_t>(layout.panels * vectors * layout.steps, 1));
    const double time = depth.time * (1 + extra_time * double(extra) / steps);
    if (time >= least) continue;
    least = time;
    header.depth = int32_t(depth.rows);
    best = std::move(table);
  }
  if (header.depth == 0) return false;
  header.shift = source.shift;
  write_panels(source, S8PanelsLayout(header.depth, k, n), best, to, threads);
  return true;
}

}  // namespace rlx::cpu
