// Runs 8-bit matrix products: packs, walks tasks and blocks, takes off the zero points of B.
#include "cpu/kernels/gemm_s8.h"

#include <algorithm>
#include <cstring>

#include "core/cpuid.h"
#include "core/divide.h"
#include "cpu/kernels/gemm_plan.h"
#include "cpu/kernels/gemm_s8_bytes.h"
#include "cpu/kernels/gemm_s8_kernels.h"
#include "cpu/kernels/gemm_s8_pack.h"
#include "cpu/kernels/gemm_s8_zero.h"
#include "cpu/team.h"

namespace rlx::cpu {
namespace {

const S8Kernels& kernels_in_force() {
#if defined(__x86_64__)
  if (cpu_has_vnni()) return s8_kernels_vnni;
  if (cpu_isa() == Isa::avx512) return s8_kernels_avx512;
  if (cpu_isa() == Isa::avx2) return s8_kernels_avx2;
#endif
  return s8_kernels_portable;
}

class Product {
 public:
  explicit Product(const GemmS8Call& call)
      : call_(call), shape_(call.shape), kernels_(kernels_in_force()),
        grid_(cut_tasks(call.shape, call.threads, call.b_packed, kernels_.rows, kernels_.cols)) {
    // A panel of B takes half of the first-level cache, a block of A half of the second.
    const int64_t deep = cpu_info().l1d_bytes / 2 / kernels_.cols / 2 * 2;
    block_k_ = std::max<int64_t>(std::min(round_up(shape_.k, 2), deep), 2);
    a_ld_ = block_k_ + 16;
    const int64_t high = cpu_info().l2_bytes / 2 / (a_ld_ * 2) / kernels_.rows * kernels_.rows;
    block_rows_ = std::clamp<int64_t>(high, kernels_.rows, 16 * int64_t{kernels_.rows});
    block_rows_ = std::min(block_rows_, grid_.task_rows);
    block_cols_ = std::min(round_up(512, kernels_.cols), grid_.task_cols);
    a_bytes_ = round_up(block_rows_ * a_ld_ * 2, 64);
    sums_bytes_ = round_up(block_rows_ * 4, 64);
    b_bytes_ = call.b_packed ? 0 : round_up(block_k_ * block_cols_, 64);
    c_bytes_ = call.store ? 0 : round_up(block_rows_ * block_cols_ * 4, 64);
    per_thread_ = a_bytes_ + sums_bytes_ + b_bytes_ + c_bytes_;
    if (call.b_packed && kernels_.multiply_bytes) {
      per_thread_ = std::max(per_thread_, s8_bytes_workspace(call, kernels_));
    }
  }

  size_t workspace() const {
    return size_t(per_thread_ * std::min<int64_t>(std::max(call_.threads, 1), grid_.tasks));
  }

  void run() const {
    parallel_tasks(call_.threads, grid_.tasks, [&](int64_t task, int thread) {
      run_task(task, static_cast<char*>(call_.workspace) + thread * per_thread_);
    });
  }

 private:
  // One task's matrices and buffers.
  struct Part {
    int64_t item = 0, a_offset = 0;
    const int8_t* b = nullptr;
    int32_t* c = nullptr;
    const char *a_zero = nullptr, *b_zero = nullptr;
    int16_t* a_buffer = nullptr;
    int32_t* sums = nullptr;  // of the rows of A - a_zero
    int8_t* b_buffer = nullptr;
    int32_t* c_buffer = nullptr;
  };

  void run_task(int64_t task, char* own) const {
    Part part;
    const BatchIndex batch = batch_index(shape_, grid_, task);
    part.item = batch.item;
    part.a_offset = batch.offset(shape_.a_batch);
    part.b = static_cast<const int8_t*>(call_.b) + batch.offset(shape_.b_batch);
    if (call_.store) part.c = call_.c + batch.offset(shape_.c_batch);
    if (call_.a_zero) {
      part.a_zero = static_cast<const char*>(call_.a_zero) + batch.offset(call_.a_zero_batch);
    }
    if (call_.b_zero) {
      part.b_zero = static_cast<const char*>(call_.b_zero) + batch.offset(call_.b_zero_batch);
    }
    part.a_buffer = reinterpret_cast<int16_t*>(own);
    part.sums = reinterpret_cast<int32_t*>(own + a_bytes_);
    part.b_buffer = reinterpret_cast<int8_t*>(own + a_bytes_ + sums_bytes_);
    part.c_buffer = reinterpret_cast<int32_t*>(own + a_bytes_ + sums_bytes_ + b_bytes_);
    const int64_t first_row = task % grid_.row_tasks * grid_.task_rows;
    const int64_t first_col = task / grid_.row_tasks % grid_.col_tasks * grid_.task_cols;
    const int64_t end_row = std::min<int64_t>(first_row + grid_.task_rows, shape_.m);
    const int64_t end_col = std::min<int64_t>(first_col + grid_.task_cols, shape_.n);
    if (call_.b_packed) {
      const auto& header = *reinterpret_cast<const S8Header*>(part.b);
      if (header.depth) {
        return s8_bytes_run({call_, kernels_, header, part.a_zero, part.b_zero, part.a_offset,
                             part.item, part.c, own, first_row, end_row, first_col, end_col});
      }
      part.b += sizeof(S8Header);
    }
    for (int64_t col = first_col; col < end_col; col += block_cols_) {
      for (int64_t row = first_row; row < end_row; row += block_rows_) {
        run_block(part, row, std::min(block_rows_, end_row - row), col,
                  std::min(block_cols_, end_col - col));
      }
    }
  }

  void run_block(const Part& part, int64_t row, int64_t rows, int64_t col, int64_t cols) const {
    S8Block block;
    block.rows = rows;
    block.cols = cols;
    block.a = part.a_buffer;
    block.a_ld = a_ld_;
    block.c = call_.store ? part.c + row * shape_.ldc + col : part.c_buffer;
    block.ldc = call_.store ? shape_.ldc : block_cols_;
    std::fill(part.sums, part.sums + rows, 0);
    int64_t at = 0;
    do {  // once even for k = 0, which leaves zeros
      const int64_t length = std::min<int64_t>(block_k_, shape_.k - at);
      pack_a(part, row, rows, at, length);
      place_b(part, col, cols, at, length, block);
      block.pairs = (length + 1) / 2;
      block.accumulate = at > 0;
      kernels_.multiply(block);
      at += length;
    } while (at < shape_.k);
    for (int64_t i = 0; i < rows; ++i) {
      s8_take_off_b_zero(call_, part.b_zero, call_.b_signed ? 0 : 128, col, cols,
                         uint32_t(part.sums[i]), block.c + i * block.ldc);
    }
    if (call_.tile) {
      call_.tile(call_.context, block.c, part.item * shape_.m + row, col, rows, cols, block.ldc);
    }
  }

  void pack_a(const Part& part, int64_t row, int64_t rows, int64_t at, int64_t length) const {
    for (int64_t i = 0; i < rows; ++i) {
      int32_t zero = 0;
      if (part.a_zero) {
        zero = s8_zero(call_.a_signed, part.a_zero, (row + i) * call_.a_zero_step);
      }
      int16_t* to = part.a_buffer + i * a_ld_;
      s8_read_row(call_, call_.a, part.a_offset, row + i, at, length, zero, to);
      if (length % 2) to[length] = 0;
      uint32_t sum = 0;
      for (int64_t k = 0; k < length; ++k) sum += uint32_t(int32_t{to[k]});
      part.sums[i] = int32_t(uint32_t(part.sums[i]) + sum);
    }
  }

  void place_b(const Part& part, int64_t col, int64_t cols, int64_t at, int64_t length,
               S8Block& block) const {
    if (call_.b_packed) {
      const int64_t even = round_up(shape_.k, 2);
      block.b = part.b + col * even + at * kernels_.cols;
      block.b_panel = even * kernels_.cols;
      return;
    }
    const int64_t start = shape_.trans_b ? col * shape_.ldb + at : at * shape_.ldb + col;
    s8_pack_columns(call_.b_signed, part.b + start, shape_.ldb, shape_.trans_b, length, cols,
                    kernels_.cols, part.b_buffer);
    block.b = part.b_buffer;
    block.b_panel = round_up(length, 2) * kernels_.cols;
  }

  const GemmS8Call& call_;
  const params::Gemm& shape_;
  const S8Kernels& kernels_;
  const TaskGrid grid_;
  int64_t block_k_ = 0, block_rows_ = 0, block_cols_ = 0, a_ld_ = 0;
  int64_t a_bytes_ = 0, sums_bytes_ = 0, b_bytes_ = 0, c_bytes_ = 0, per_thread_ = 0;
};

bool is_empty(const params::Gemm& s) {
  return s.m == 0 || s.n == 0 || s.batch[0] == 0 || s.batch[1] == 0 || s.batch[2] == 0;
}

}  // namespace

size_t gemm_s8_workspace(const GemmS8Call& call) {
  return is_empty(call.shape) ? 0 : Product(call).workspace();
}

void gemm_s8(const GemmS8Call& call) {
  if (!is_empty(call.shape)) Product(call).run();
}

int64_t gemm_s8_packed_bytes(int64_t k, int64_t n) {
  const S8Kernels& kernels = kernels_in_force();
  int64_t bytes = round_up(k, 2) * round_up(n, kernels.cols);
  if (kernels.multiply_bytes) bytes = std::max(bytes, s8_bytes_bound(k, n));
  // Matrices of a batch lie behind one another, and their headers are aligned.
  return round_up(int64_t{sizeof(S8Header)} + bytes, 64);
}

void gemm_s8_pack_b(bool b_signed, const void* b, int64_t ldb, bool trans, int64_t k, int64_t n,
                    void* packed, int threads) {
  const S8Kernels& kernels = kernels_in_force();
  auto* header = new (packed) S8Header;
  packed = header + 1;
  if (kernels.multiply_bytes &&
      s8_pack_bytes(b_signed, static_cast<const int8_t*>(b), ldb, trans, k, n, *header,
                    static_cast<int8_t*>(packed), threads)) {
    return;
  }
  const int64_t width = kernels.cols, panels = (n + width - 1) / width;
  const int64_t even = round_up(k, 2);
  parallel_for(threads, panels, 65536 / (even * width + 1) + 1, [&](int64_t begin, int64_t end) {
    const int64_t col = begin * width, cols = std::min(end * width, n) - col;
    const int8_t* from = static_cast<const int8_t*>(b) + (trans ? col * ldb : col);
    s8_pack_columns(b_signed, from, ldb, trans, k, cols, width,
                    static_cast<int8_t*>(packed) + col * even);
  });
}

}  // namespace rlx::cpu
