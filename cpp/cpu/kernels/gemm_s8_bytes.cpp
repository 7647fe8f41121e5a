// Packs small weights for products on bytes, and walks the blocks of such a product.
#include "cpu/kernels/gemm_s8_bytes.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "core/cpuid.h"
#include "core/divide.h"
#include "cpu/kernels/gemm_s8_pack.h"
#include "cpu/kernels/gemm_s8_zero.h"
#include "cpu/team.h"

namespace rlx::cpu {
namespace {

constexpr int64_t max_width = 16;
constexpr int budget = 128;  // of the magnitudes that meet in one 16-bit sum

// Rows of a panel.
using Step = int16_t[std::ranges::max(s8_depths)][max_width];

// Of each four rows of a column the first two meet in one sum, the others in another.
bool fits(const Step& step, int64_t depth, int64_t width) {
  int over = 0;
  for (int64_t j = 0; j < width; ++j) {
    int sums[2] = {0, 0};
    for (int64_t row = 0; row < depth; ++row) sums[row / 2 % 2] += std::abs(int(step[row][j]));
    over |= (sums[0] > budget) | (sums[1] > budget);
  }
  return over == 0;
}

// Writes what the sums can bear of a step and takes it off.
void write_step(Step& step, int64_t depth, int64_t width, bool whole, int8_t* to) {
  for (int64_t j = 0; j < width; ++j) {
    int left[2] = {budget, budget};
    for (int64_t row = 0; row < depth; ++row) {
      int value = step[row][j];
      if (!whole) {
        int& room = left[row / 2 % 2];
        value = std::clamp(value, -room, room);
        room -= std::abs(value);
        step[row][j] = int16_t(step[row][j] - value);
      }
      to[row / 4 * 4 * width + j * 4 + row % 4] = int8_t(value);
    }
  }
}

struct Source {
  const int8_t* b;
  int64_t row_step, col_step, k;
  int8_t flip;  // unsigned values are kept less 128, which is a flip of the highest bit
};

void read_step(const Source& source, int64_t row, int64_t depth, int64_t cols, Step& step) {
  std::memset(step, 0, sizeof(step));
  for (int64_t i = 0; i < std::min(depth, source.k - row); ++i) {
    const int8_t* from = source.b + (row + i) * source.row_step;
    for (int64_t j = 0; j < cols; ++j) {
      step[i][j] = int8_t(from[j * source.col_step] ^ source.flip);
    }
  }
}

bool pack_panel(const Source& source, const S8BytesLayout& layout, int64_t cols, int8_t* to,
                int32_t* sums) {
  const int64_t width = layout.width, depth = layout.depth;
  int8_t* spare = to + layout.steps * layout.step_bytes();
  int32_t count = 0;
  int32_t* rows = reinterpret_cast<int32_t*>(to + layout.list_at());
  std::fill_n(sums, width, 0);
  for (int64_t s = 0; s < layout.steps; ++s) {
    Step step;
    read_step(source, s * depth, depth, cols, step);
    for (int64_t row = 0; row < depth; ++row) {
      for (int64_t j = 0; j < width; ++j) sums[j] += step[row][j];
    }
    bool whole = fits(step, depth, width);
    write_step(step, depth, width, whole, to + s * layout.step_bytes());
    while (!whole) {
      if (count == layout.spare) return false;
      whole = fits(step, depth, width);
      write_step(step, depth, width, whole, spare + count * layout.step_bytes());
      rows[1 + count++] = int32_t(s * depth);
    }
  }
  rows[0] = count;
  return true;
}

struct Plan {
  bool direct;  // A is read where it lies
  int64_t a_ld, rows, cols, a_bytes, sums_bytes, c_bytes;

  Plan(const GemmS8Call& call, const S8Kernels& kernels, int64_t depth) {
    const params::Gemm& s = call.shape;
    direct = !call.a_signed && call.taps == 0 && !s.trans_a && s.k % depth == 0;
    // Not a multiple of the cache's way, so that the rows of a tile do not meet.
    a_ld = direct ? s.lda : round_up(s.k, depth) + 16;
    const int64_t high = cpu_info().l2_bytes * 3 / 8 / std::max<int64_t>(s.k, 1);
    rows = std::clamp<int64_t>(high / kernels.rows, 1, 16) * kernels.rows;
    rows = std::min(rows, round_up(s.m, kernels.rows));
    cols = std::min<int64_t>(16 * kernels.cols, round_up(s.n, kernels.cols));
    a_bytes = direct ? 0 : round_up(rows * a_ld, 64);
    sums_bytes = round_up(rows * 4, 64);
    c_bytes = round_up(rows * cols * 4, 64);
  }
};

class Task {
 public:
  explicit Task(const S8BytesTask& t)
      : t_(t), call_(t.call), plan_(t.call, t.kernels, t.depth),
        layout_(t.depth, call_.shape.k, call_.shape.n, t.kernels.cols),
        b_sums_(reinterpret_cast<const int32_t*>(t.b)) {
    auto* own = static_cast<char*>(t.workspace);
    a_buffer_ = reinterpret_cast<uint8_t*>(own);
    a_sums_ = reinterpret_cast<uint32_t*>(own + plan_.a_bytes);
    c_buffer_ = reinterpret_cast<int32_t*>(own + plan_.a_bytes + plan_.sums_bytes);
  }

  // Rows outside, so that A is gathered once for all columns.
  void run() {
    for (int64_t row = t_.first_row; row < t_.end_row; row += plan_.rows) {
      const int64_t rows = std::min(plan_.rows, t_.end_row - row);
      place_a(row, rows);
      for (int64_t col = t_.first_col; col < t_.end_col; col += plan_.cols) {
        run_block(row, rows, col, std::min(plan_.cols, t_.end_col - col));
      }
    }
  }

 private:
  bool sums_matter() const { return t_.b_zero != nullptr || !call_.b_signed; }

  void place_a(int64_t row, int64_t rows) {
    if (plan_.direct) {
      a_ = static_cast<const uint8_t*>(call_.a) + t_.a_offset + row * plan_.a_ld;
    } else {
      for (int64_t i = 0; i < rows; ++i) {
        uint8_t* to = a_buffer_ + i * plan_.a_ld;
        s8_read_bytes(call_, t_.a_offset, row + i, to);
        const int64_t padding = round_up(call_.shape.k, t_.depth) - call_.shape.k;
        std::fill_n(to + call_.shape.k, padding, uint8_t(0));
      }
      a_ = a_buffer_;
    }
    for (int64_t i = 0; sums_matter() && i < rows; ++i) {
      uint32_t sum = 0;
      for (int64_t k = 0; k < call_.shape.k; ++k) sum += a_[i * plan_.a_ld + k];
      a_sums_[i] = sum;
    }
  }

  void run_block(int64_t row, int64_t rows, int64_t col, int64_t cols) const {
    S8BytesBlock block;
    block.a = a_;
    block.a_ld = plan_.a_ld;
    block.b = t_.b + layout_.sums_bytes() + col / layout_.width * layout_.panel_bytes();
    block.b_panel = layout_.panel_bytes();
    block.list_at = layout_.list_at();
    block.steps = layout_.steps;
    block.depth = layout_.depth;
    block.c = t_.c ? t_.c + row * call_.shape.ldc + col : c_buffer_;
    block.ldc = t_.c ? call_.shape.ldc : plan_.cols;
    block.rows = rows;
    block.cols = cols;
    t_.kernels.multiply_bytes(block);
    for (int64_t i = 0; i < rows; ++i) take_off(row + i, i, col, cols, block.c + i * block.ldc);
    if (call_.tile) {
      call_.tile(call_.context, block.c, t_.item * call_.shape.m + row, col, rows, cols,
                 block.ldc);
    }
  }

  // (a - za) (b - zb) = a b - za (sum of b - k zb) - zb (sum of a), b and zb less 128 when unsigned
  void take_off(int64_t row, int64_t i, int64_t col, int64_t cols, int32_t* c) const {
    uint32_t za = call_.a_signed ? 128 : 0;
    if (t_.a_zero) za += uint32_t(s8_zero(call_.a_signed, t_.a_zero, row * call_.a_zero_step));
    if (za != 0) {
      for (int64_t j = 0; j < cols; ++j) {
        c[j] = int32_t(uint32_t(c[j]) - za * uint32_t(b_sums_[col + j]));
      }
    }
    if (!sums_matter()) return;
    const uint32_t sum = a_sums_[i] - uint32_t(call_.shape.k) * za;
    s8_take_off_b_zero(call_, t_.b_zero, col, cols, sum, c);
  }

  const S8BytesTask& t_;
  const GemmS8Call& call_;
  const Plan plan_;
  const S8BytesLayout layout_;
  const int32_t* b_sums_;
  const uint8_t* a_ = nullptr;
  uint8_t* a_buffer_;
  uint32_t* a_sums_;
  int32_t* c_buffer_;
};

}  // namespace

bool s8_pack_bytes(bool b_signed, const int8_t* b, int64_t ldb, bool trans, int64_t k, int64_t n,
                   const S8BytesLayout& layout, int8_t* to, int threads) {
  const Source whole{b, trans ? 1 : ldb, trans ? ldb : 1, k, b_signed ? int8_t(0) : int8_t(-128)};
  auto* sums = reinterpret_cast<int32_t*>(to);
  int8_t* panels = to + layout.sums_bytes();
  std::atomic<bool> fit = true;
  const int64_t at_once = 65536 / (k * layout.width + 1) + 1;
  parallel_for(threads, layout.panels, at_once, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end && fit; ++p) {
      const int64_t col = p * layout.width;
      Source source = whole;
      source.b += col * source.col_step;
      if (!pack_panel(source, layout, std::min(layout.width, n - col),
                      panels + p * layout.panel_bytes(), sums + col)) {
        fit = false;
      }
    }
  });
  return fit;
}

int64_t s8_bytes_workspace(const GemmS8Call& call, const S8Kernels& kernels) {
  // Before B is known: the deepest steps need most.
  const Plan plan(call, kernels, std::ranges::max(s8_depths));
  return plan.a_bytes + plan.sums_bytes + plan.c_bytes;
}

void s8_bytes_run(const S8BytesTask& task) { Task(task).run(); }

}  // namespace rlx::cpu
