// Walks the blocks of a product on bytes and takes off the zero points.
#include "cpu/kernels/gemm_s8_bytes.h"

#include <algorithm>

#include "core/cpuid.h"
#include "core/divide.h"
#include "cpu/kernels/gemm_s8_pack.h"
#include "cpu/kernels/gemm_s8_panels.h"
#include "cpu/kernels/gemm_s8_zero.h"

namespace rlx::cpu {
namespace {

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
      : t_(t), call_(t.call), plan_(t.call, t.kernels, t.header.depth),
        layout_(t.header.depth, call_.shape.k, call_.shape.n),
        b_(reinterpret_cast<const int8_t*>(&t.header + 1)),
        b_sums_(reinterpret_cast<const int32_t*>(b_)),
        sums_matter_(s8_b_zero_matters(call_, t.b_zero, t.header.shift)) {
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
  void place_a(int64_t row, int64_t rows) {
    if (plan_.direct) {
      a_ = static_cast<const uint8_t*>(call_.a) + t_.a_offset + row * plan_.a_ld;
    } else {
      for (int64_t i = 0; i < rows; ++i) {
        uint8_t* to = a_buffer_ + i * plan_.a_ld;
        s8_read_bytes(call_, t_.a_offset, row + i, to);
        const int64_t padding = round_up(call_.shape.k, t_.header.depth) - call_.shape.k;
        std::fill_n(to + call_.shape.k, padding, uint8_t(0));
      }
      a_ = a_buffer_;
    }
    for (int64_t i = 0; sums_matter_ && i < rows; ++i) {
      uint32_t sum = 0;
      for (int64_t k = 0; k < call_.shape.k; ++k) sum += a_[i * plan_.a_ld + k];
      a_sums_[i] = sum;
    }
  }

  void run_block(int64_t row, int64_t rows, int64_t col, int64_t cols) const {
    S8BytesBlock block;
    block.a = a_;
    block.a_ld = plan_.a_ld;
    const int64_t panel = col / S8Panel::width;
    block.b = b_ + layout_.panels_at() + panel * layout_.panel_bytes();
    block.panels = reinterpret_cast<const S8Panel*>(b_ + layout_.table_at()) + panel;
    block.rest = b_;
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

  // (a - za) (b - zb) = a b - za (sum of b - k zb) - zb (sum of a), b and zb less the shift
  void take_off(int64_t row, int64_t i, int64_t col, int64_t cols, int32_t* c) const {
    uint32_t za = call_.a_signed ? 128 : 0;
    if (t_.a_zero) za += uint32_t(s8_zero(call_.a_signed, t_.a_zero, row * call_.a_zero_step));
    if (za != 0) {
      for (int64_t j = 0; j < cols; ++j) {
        c[j] = int32_t(uint32_t(c[j]) - za * uint32_t(b_sums_[col + j]));
      }
    }
    if (!sums_matter_) return;
    const uint32_t sum = a_sums_[i] - uint32_t(call_.shape.k) * za;
    s8_take_off_b_zero(call_, t_.b_zero, t_.header.shift, col, cols, sum, c);
  }

  const S8BytesTask& t_;
  const GemmS8Call& call_;
  const Plan plan_;
  const S8PanelsLayout layout_;
  const int8_t* b_;  // behind the header
  const int32_t* b_sums_;
  const bool sums_matter_;
  const uint8_t* a_ = nullptr;
  uint8_t* a_buffer_;
  uint32_t* a_sums_;
  int32_t* c_buffer_;
};

}  // namespace

int64_t s8_bytes_workspace(const GemmS8Call& call, const S8Kernels& kernels) {
  // Before B is known: the deepest steps need most.
  const Plan plan(call, kernels, s8_deepest);
  return plan.a_bytes + plan.sums_bytes + plan.c_bytes;
}

void s8_bytes_run(const S8BytesTask& task) { Task(task).run(); }

}  // namespace rlx::cpu
