// Runs matrix products: walks tasks and cache blocks, and calls the inner kernels.
#include "cpu/kernels/gemm.h"

#include <algorithm>

#include "core/cpuid.h"
#include "cpu/kernels/gemm_kernels.h"
#include "cpu/kernels/gemm_pack.h"
#include "cpu/kernels/gemm_plan.h"
#include "cpu/team.h"

namespace rlx::cpu {
namespace {

// Calls f with the kernels for sums of C's type.
template <class F>
auto with_kernels(DType type, F&& f) {
  const GemmTable& table = gemm_table();
  switch (type) {
    case DType::float64: return f(table.f64);
    case DType::int32: case DType::uint32: return f(table.u32);
    case DType::int64: case DType::uint64: return f(table.u64);
    default: return f(table.f32);
  }
}

bool is_empty(const GemmCall& call) {
  const params::Gemm& s = call.shape;
  return s.m == 0 || s.n == 0 || s.batch[0] == 0 || s.batch[1] == 0 || s.batch[2] == 0;
}

template <class T>
class Product {
 public:
  Product(const GemmCall& call, const GemmKernels<T>& kernels)
      : call_(call), shape_(call.shape), kernels_(kernels),
        plan_(plan_gemm(call, kernels.rows, kernels.cols, int(sizeof(T)))) {}

  size_t workspace() const {
    const int64_t users = std::min<int64_t>(std::max(call_.threads, 1), plan_.tasks);
    return size_t(plan_.bytes_per_thread() * users);
  }

  void run() const {
    parallel_tasks(call_.threads, plan_.tasks, [&](int64_t task, int thread) {
      char* own = static_cast<char*>(call_.workspace) + thread * plan_.bytes_per_thread();
      run_task(task, own);
    });
  }

 private:
  // One task's share of the operands: matrices of one batch entry and a rectangle of C.
  struct Part {
    int64_t item = 0;  // index of the matrix in the batch
    int64_t a_offset = 0;
    const char* b = nullptr;
    char* c = nullptr;
    const T* bias = nullptr;
    const float* residual = nullptr;
    int64_t row = 0, rows = 0, col = 0, cols = 0;
    T *a_buffer = nullptr, *b_buffer = nullptr, *c_buffer = nullptr;
  };

  void run_task(int64_t task, char* own) const {
    Part part = part_of(task);
    part.a_buffer = reinterpret_cast<T*>(own);
    part.b_buffer = reinterpret_cast<T*>(own + plan_.a_bytes);
    part.c_buffer = reinterpret_cast<T*>(own + plan_.a_bytes + plan_.b_bytes);
    if (plan_.dot || plan_.stream) return run_few_rows(part);
    int64_t from = 0;
    do {  // once even for k = 0
      const int64_t to = std::min<int64_t>(from + plan_.depth, shape_.k);
      run_depth(part, from, to);
      from = to;
    } while (from < shape_.k);
  }

  // Adds the products of k in [from, to) to the part.
  void run_depth(const Part& part, int64_t from, int64_t to) const {
    const int64_t end = part.col + part.cols;
    for (int64_t col = part.col; col < end; col += plan_.block_cols) {
      const int64_t cols = std::min(plan_.block_cols, end - col);
      if (plan_.pack_b) pack_b(part, col, cols, from, to - from);
      for (int64_t row = part.row; row < part.row + part.rows; row += plan_.block_rows) {
        const int64_t rows = std::min(plan_.block_rows, part.row + part.rows - row);
        run_block(part, row, rows, col, cols, from, to);
      }
    }
  }

  Part part_of(int64_t task) const {
    Part part;
    const BatchIndex batch = batch_index(shape_, plan_, task);
    part.item = batch.item;
    // Neighbouring tasks share columns of B: it is read once while it is in a shared cache.
    const int64_t row_task = task % plan_.row_tasks;
    const int64_t col_task = task / plan_.row_tasks % plan_.col_tasks;
    part.a_offset = batch.offset(shape_.a_batch);
    part.b = static_cast<const char*>(call_.b) +
             batch.offset(shape_.b_batch) * (call_.b_packed ? int64_t(sizeof(T)) : b_size());
    if (call_.store) {
      part.c = static_cast<char*>(call_.c) +
               batch.offset(shape_.c_batch) * int64_t(size_of(call_.c_type));
    }
    const GemmEpilogue& epilogue = call_.epilogue;
    if (epilogue.bias) {
      part.bias = static_cast<const T*>(epilogue.bias) + batch.offset(epilogue.bias_batch);
    }
    if (epilogue.add_residual) {
      part.residual = epilogue.residual + batch.offset(epilogue.residual_batch);
    }
    part.row = row_task * plan_.task_rows;
    part.rows = std::min<int64_t>(plan_.task_rows, shape_.m - part.row);
    part.col = col_task * plan_.task_cols;
    part.cols = std::min<int64_t>(plan_.task_cols, shape_.n - part.col);
    return part;
  }

  int64_t b_size() const { return int64_t(size_of(call_.b_type)); }

  // Columns [col, col + cols) by rows [at, at + depth) of B.
  void pack_b(const Part& part, int64_t col, int64_t cols, int64_t at, int64_t depth) const {
    const int64_t start = shape_.trans_b ? col * shape_.ldb + at : at * shape_.ldb + col;
    pack_columns<T>(kernels_, call_.b_type, part.b + start * b_size(), shape_.ldb, shape_.trans_b,
                    depth, cols, part.b_buffer);
  }

  // Adds the products of k in [at, to) to rows x cols of C, one block of k after the other.
  void run_block(const Part& part, int64_t row, int64_t rows, int64_t col, int64_t cols,
                 int64_t at, int64_t to) const {
    Block<T> block;
    block.rows = rows;
    block.alpha = T(shape_.alpha);
    const int64_t from = at;
    do {
      block.k = std::min<int64_t>(plan_.block_k, to - at);
      block.accumulate = at > 0;
      if (plan_.pack_a) {
        pack_a_block<T>(kernels_, call_, call_.a, part.a_offset, row, rows, at, block.k,
                        part.a_buffer, plan_.a_ld);
        block.a = part.a_buffer;
        block.lda = plan_.a_ld;
      } else {
        block.a = static_cast<const T*>(call_.a) + part.a_offset + row * shape_.lda + at;
        block.lda = shape_.lda;
      }
      const bool last = at + block.k >= shape_.k;
      for (int64_t group = 0; group < cols; group += plan_.group_cols) {
        const int64_t width = std::min(plan_.group_cols, cols - group);
        place_c(part, row, col, group, block);
        block.next = nullptr;
        if (call_.b_packed) {
          const bool same = group + width < cols;  // the same rows of B go on
          const int64_t row_next = same ? at : at + block.k < shape_.k ? at + block.k : 0;
          const int64_t col_next = same ? group + width : 0;
          block.next = packed_panel(part, col + col_next, row_next);
        }
        run_group(part, block, from, to, at, col, group, width);
        if (last) finish(part, block, row, col + group, width);
      }
      at += block.k;
    } while (at < to);
  }

  // Where the sums of (row, col + group) are kept.
  void place_c(const Part& part, int64_t row, int64_t col, int64_t group, Block<T>& block) const {
    if (plan_.private_c) {
      block.c = part.c_buffer + group;
      block.ldc = plan_.c_ld;
    } else {
      block.c = reinterpret_cast<T*>(part.c) + row * shape_.ldc + col + group;
      block.ldc = shape_.ldc;
    }
  }

  // Row `at` of the packed panel that begins with column `col`.
  const T* packed_panel(const Part& part, int64_t col, int64_t at) const {
    return reinterpret_cast<const T*>(part.b) + col * shape_.k + at * kernels_.cols;
  }

  void run_group(const Part& part, Block<T>& block, int64_t from, int64_t to, int64_t at,
                 int64_t col, int64_t group, int64_t width) const {
    block.cols = width;
    block.bias = part.bias ? part.bias + col + group : nullptr;
    const int64_t panel_cols = kernels_.cols;
    block.b_step = panel_cols;
    if (plan_.pack_b) {
      block.b = part.b_buffer + group * (to - from) + (at - from) * panel_cols;
      block.b_panel = (to - from) * panel_cols;
      return kernels_.multiply(block);
    }
    if (call_.b_packed) {
      block.b = packed_panel(part, col + group, at);
      block.b_panel = shape_.k * panel_cols;
      return kernels_.multiply(block);
    }
    // B as it lies; only its last, partial panel must be copied to be readable in full.
    const int64_t whole = width / panel_cols * panel_cols;
    block.cols = whole;
    block.b = reinterpret_cast<const T*>(part.b) + at * shape_.ldb + col + group;
    block.b_step = shape_.ldb;
    block.b_panel = panel_cols;
    if (whole > 0) kernels_.multiply(block);
    if (whole == width) return;
    if (at == 0) pack_b(part, col + group + whole, width - whole, 0, shape_.k);
    Block<T> edge = block;
    edge.cols = width - whole;
    edge.c += whole;
    if (edge.bias) edge.bias += whole;
    edge.b = part.b_buffer + at * panel_cols;
    edge.b_step = panel_cols;
    kernels_.multiply(edge);
  }

  // Reads B once, as it lies.
  void run_few_rows(const Part& part) const {
    Block<T> block;
    block.rows = part.rows;
    block.k = shape_.k;
    block.alpha = T(shape_.alpha);
    block.a = static_cast<const T*>(call_.a) + part.a_offset + part.row * shape_.lda;
    block.lda = shape_.lda;
    block.b_step = shape_.ldb;
    constexpr int64_t chunk = 16384 / sizeof(T);  // long rows for the prefetcher, sums nearby
    const int64_t end = part.col + part.cols;
    for (int64_t col = part.col; col < end; col += block.cols) {
      block.cols = std::min(chunk, end - col);
      block.b = reinterpret_cast<const T*>(part.b) + (plan_.dot ? col * shape_.ldb : col);
      block.bias = part.bias ? part.bias + col : nullptr;
      place_c(part, part.row, col, 0, block);
      if (plan_.dot) kernels_.dot(block);
      else kernels_.stream(block);
      finish(part, block, part.row, col, block.cols);
    }
  }

  // The epilogue and the rounding to C's type of the `block` at (row, col).
  void finish(const Part& part, const Block<T>& block, int64_t row, int64_t col,
              int64_t width) const {
    if constexpr (std::is_same_v<T, float>) {
      const GemmEpilogue& wanted = call_.epilogue;
      const FloatKernels& floats = gemm_table().floats;
      if (wanted.activation != Activation::none || part.residual) {
        EpilogueBlock ready{block.c, block.ldc, block.rows, width};
        if (part.residual) ready.residual = part.residual + row * wanted.residual_ld + col;
        ready.residual_ld = wanted.residual_ld;
        ready.residual_first = wanted.residual_first;
        ready.activation = wanted.activation;
        ready.low = wanted.low;
        ready.high = wanted.high;
        floats.epilogue(ready);
      }
      if (wanted.tile) {
        wanted.tile(wanted.context, block.c, part.item * shape_.m + row, col, block.rows, width,
                    block.ldc);
      }
      if (!plan_.private_c || !call_.store) return;
      const int64_t bytes = int64_t(size_of(call_.c_type));
      for (int64_t i = 0; i < block.rows; ++i) {
        char* to = part.c + ((row + i) * shape_.ldc + col) * bytes;
        floats.narrow(call_.c_type, block.c + i * block.ldc, width, to);
      }
    }
  }

  const GemmCall& call_;
  const params::Gemm& shape_;
  const GemmKernels<T>& kernels_;
  const GemmPlan plan_;
};

}  // namespace

const GemmTable& gemm_table() {
#if defined(__x86_64__)
  switch (cpu_isa()) {
    case Isa::avx512: return gemm_table_avx512;
    case Isa::avx2: return gemm_table_avx2;
    case Isa::portable: break;
  }
#endif
  return gemm_table_portable;
}

size_t gemm_workspace(const GemmCall& call) {
  if (is_empty(call)) return 0;
  const GemmCall folded = fold_batch(call);
  return with_kernels(call.c_type, [&]<class T>(const GemmKernels<T>& kernels) {
    return Product<T>(folded, kernels).workspace();
  });
}

void gemm(const GemmCall& call) {
  if (is_empty(call)) return;
  const GemmCall folded = fold_batch(call);
  with_kernels(call.c_type, [&]<class T>(const GemmKernels<T>& kernels) {
    Product<T>(folded, kernels).run();
  });
}

int64_t gemm_packed_count(DType type, int64_t k, int64_t n) {
  return with_kernels(type, [&](const auto& kernels) {
    return k * ((n + kernels.cols - 1) / kernels.cols * kernels.cols);
  });
}

DType gemm_packed_type(DType type) {
  return size_of(type) == 2 ? DType::float32 : type;
}

void gemm_pack_b(DType type, const void* b, int64_t ldb, bool trans, int64_t k, int64_t n,
                 void* packed, int threads) {
  with_kernels(type, [&]<class T>(const GemmKernels<T>& kernels) {
    const int64_t width = kernels.cols, panels = (n + width - 1) / width;
    const int64_t grain = std::max<int64_t>(65536 / std::max<int64_t>(k * width, 1), 1);
    parallel_for(threads, panels, grain, [&](int64_t begin, int64_t end) {
      const int64_t col = begin * width, cols = std::min(end * width, n) - col;
      const char* from = static_cast<const char*>(b) +
                         (trans ? col * ldb : col) * int64_t(size_of(type));
      pack_columns<T>(kernels, type, from, ldb, trans, k, cols, static_cast<T*>(packed) + col * k);
    });
  });
}

}  // namespace rlx::cpu
