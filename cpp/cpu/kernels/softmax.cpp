// Runs Softmax in scratch rows of L1 size where values must be converted, else in the output.
#include "cpu/kernels/softmax.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "cpu/team.h"

namespace rlx::cpu {
namespace {

constexpr int64_t block_values = 8192;  // of runs side by side
constexpr double share_ns = 15000, value_ns = 2.0;

size_t padded(size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

template <class T>
struct SoftmaxProgram::Task {
  SoftmaxLoops<T> loops;
  RowReader::Cursor cursor;
  T *values, *top;
  double* total;
  std::byte* out;
};

SoftmaxProgram::SoftmaxProgram(const Spec& spec) : log_(spec.prim->log) {
  Dims shape = spec.inputs[0].shape;
  if (const Region* prologue = spec.prim->prologue.get()) {
    shape.clear();
    for (ExprId dim : prologue->shape) shape.push_back(spec.numbers[size_t(dim)].i);
  }
  const DType type = compute_type(spec.output);
  if (type != DType::float32 && type != DType::float64) {
    throw Error(ErrorKind::unsupported, std::string("softmax is not defined for ") +
                                            name_of(spec.output));
  }
  const int rank = int(shape.size()), axis = (spec.prim->axis + rank) % std::max(rank, 1);
  if (rank > 0) {
    outer_ = extent_of(shape, 0, size_t(axis));
    extent_ = shape[size_t(axis)];
    inner_ = extent_of(shape, size_t(axis) + 1, shape.size());
  }
  wide_ = type == DType::float64;
  item_ = size_of(type);
  out_item_ = size_of(spec.output);
  store_ = store_loop(spec.output, {false, CastMode::Round::down});
  RowReader::Spec rows;
  rows.prologue = spec.prim->prologue.get();
  rows.inputs = spec.inputs;
  rows.numbers = spec.numbers;
  rows.shape = shape;
  rows.row_rank = inner_ == 1 ? std::min(axis, rank) : axis + 1;
  rows.type = type;
  reader_.emplace(rows);
  const int64_t fit = block_values / std::max<int64_t>(extent_, 1) / 16 * 16;
  block_ = inner_ == 1 ? 1 : std::min(inner_, std::max<int64_t>(fit, 16));
  const double task_ns = (value_ns + reader_->cost()) * double(extent_ * block_);
  grain_ = std::max<int64_t>(1, int64_t(share_ns / std::max(task_ns, 1.0)));
  scratch_ = padded(reader_->scratch_bytes()) + padded(size_t(extent_ * block_) * item_) +
             2 * padded(size_t(block_) * sizeof(double));
  workspace_ = scratch_ * size_t(std::max(spec.threads, 1));
}

template <class T>
void SoftmaxProgram::run_row(Task<T>& task, int64_t outer) const {
  std::byte* to = task.out + outer * extent_ * int64_t(out_item_);
  T* y = store_ ? task.values : reinterpret_cast<T*>(to);
  const void* x = task.cursor.read(outer, 0, extent_, y);
  task.loops.row(static_cast<const T*>(x), y, extent_, log_);
  if (store_) store_(to, y, nullptr, nullptr, extent_);
}

template <class T>
void SoftmaxProgram::run_columns(Task<T>& task, int64_t outer, int64_t column, int64_t n) const {
  for (int64_t k = 0; k < extent_; ++k) {
    T* to = task.values + k * n;
    const void* x = task.cursor.read(outer * extent_ + k, column, n, to);
    if (x != to) std::memcpy(to, x, size_t(n) * sizeof(T));
  }
  task.loops.columns(task.values, extent_, n, task.top, task.total, log_);
  for (int64_t k = 0; k < extent_; ++k) {
    const int64_t at = (outer * extent_ + k) * inner_ + column;
    std::byte* to = task.out + at * int64_t(out_item_);
    const T* y = task.values + k * n;
    if (store_) store_(to, y, nullptr, nullptr, n);
    else std::memcpy(to, y, size_t(n) * sizeof(T));
  }
}

template <class T>
void SoftmaxProgram::run_as(const void* const* inputs, void* out, void* workspace,
                            int threads) const {
  const int64_t columns = (inner_ + block_ - 1) / block_;
  const SoftmaxLoops<T> loops = softmax_loops<T>();
  parallel_for(threads, outer_ * columns, grain_, [&](int64_t begin, int64_t end) {
    auto* at = static_cast<std::byte*>(workspace) + size_t(team_share()) * scratch_;
    Task<T> task{loops, RowReader::Cursor(*reader_, inputs, at), nullptr, nullptr, nullptr,
                 static_cast<std::byte*>(out)};
    at += padded(reader_->scratch_bytes());
    task.values = reinterpret_cast<T*>(at);
    at += padded(size_t(extent_ * block_) * item_);
    task.top = reinterpret_cast<T*>(at);
    task.total = reinterpret_cast<double*>(at + padded(size_t(block_) * sizeof(double)));
    for (int64_t k = begin; k < end; ++k) {
      if (inner_ == 1) {
        run_row(task, k);
        continue;
      }
      const int64_t outer = k / columns, column = (k - outer * columns) * block_;
      run_columns(task, outer, column, std::min(block_, inner_ - column));
    }
  });
}

void SoftmaxProgram::run(const void* const* inputs, void* out, void* workspace,
                         int threads) const {
  if (outer_ * extent_ * inner_ == 0) return;
  if (wide_) run_as<double>(inputs, out, workspace, threads);
  else run_as<float>(inputs, out, workspace, threads);
}

template <class T>
SoftmaxLoops<T> softmax_loops() {
#if defined(__x86_64__)
  switch (cpu_isa()) {
    case Isa::avx512: return softmax_loops_for<Isa::avx512, T>();
    case Isa::avx2: return softmax_loops_for<Isa::avx2, T>();
    case Isa::portable: break;
  }
#endif
  return softmax_loops_for<Isa::portable, T>();
}

template SoftmaxLoops<float> softmax_loops<float>();
template SoftmaxLoops<double> softmax_loops<double>();

}  // namespace rlx::cpu
