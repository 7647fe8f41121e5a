// Runs Reduce: results in blocks over the team, or parts of one reduction that are then merged.
#include "cpu/kernels/reduce.h"

#include <algorithm>

#include "core/error.h"
#include "cpu/team.h"

namespace rlx::cpu {
namespace {

constexpr int64_t row_chunk = 2048;     // values read at once
constexpr int64_t block_states = 512;   // results in progress
constexpr int64_t short_row = 16;       // too few values to be worth a call for each row
constexpr double share_ns = 15000;      // worth waking a thread for

size_t padded(size_t bytes) { return (bytes + 63) / 64 * 64; }

// The type in which `kind` joins values that compute as `type`.
DType reduce_type(ReduceKind kind, DType type) {
  if (kind == ReduceKind::log_sum_exp && is_integer(type)) return DType::float64;
  if (kind == ReduceKind::mean && is_integer(type)) return DType::int64;
  return type;
}

// The first row of a row-major position among outer axes.
template <class Axis>
int64_t row_of(const std::vector<Axis>& axes, int64_t position) {
  int64_t row = 0;
  for (size_t k = axes.size(); k-- > 0;) {
    const int64_t rest = k == 0 ? 0 : position / axes[k].extent;
    row += (position - rest * axes[k].extent) * axes[k].rows;
    position = rest;
  }
  return row;
}

}  // namespace

// What one thread works with.
struct ReduceProgram::Task {
  RowReader::Cursor cursor;
  std::byte *a, *b;          // states of a block
  std::byte *buffer, *result, *cast;
};

ReduceProgram::ReduceProgram(const Spec& spec) : axes_(spec.prim->axes) {
  const Reduce& prim = *spec.prim;
  Dims shape;
  DType type = spec.inputs[0].dtype;
  if (prim.prologue) {
    for (ExprId dim : prim.prologue->shape) shape.push_back(spec.numbers[size_t(dim)].i);
    type = prim.prologue->ops[size_t(prim.prologue->results[0])].dtype;
  } else {
    shape = spec.inputs[0].shape;
  }
  const DType joined = reduce_type(prim.kind, compute_type(type));
  loops_ = reduce_loops(prim.kind, joined, prim.select_last_index);
  if (!loops_.start) {
    throw Error(ErrorKind::unsupported, std::string("this reduction is not defined for ") +
                                            name_of(type));
  }
  const bool index = prim.kind == ReduceKind::argmax || prim.kind == ReduceKind::argmin;
  const DType result = index ? DType::int64 : joined;
  item_ = size_of(joined);
  result_item_ = size_of(result);
  out_item_ = size_of(spec.output);
  cast_ = cast_loop(result, compute_type(spec.output), false);
  store_ = store_loop(spec.output, {false, CastMode::Round::down});
  find_axes(shape);
  RowReader::Spec rows;
  rows.prologue = prim.prologue.get();
  rows.inputs = spec.inputs;
  rows.numbers = spec.numbers;
  rows.shape = shape;
  rows.row_rank = row_rank_;
  rows.type = joined;
  reader_.emplace(rows);
  lay_out(std::max(spec.threads, 1));
}

void ReduceProgram::find_axes(std::span<const int64_t> shape) {
  const auto reduced = [&](size_t axis) {
    return std::find(axes_.begin(), axes_.end(), int(axis)) != axes_.end();
  };
  size_t end = shape.size();
  while (end > 0 && shape[end - 1] == 1) --end;  // what kind an axis of 1 has does not matter
  size_t begin = end;
  inner_reduced_ = end > 0 && reduced(end - 1);
  while (begin > 0 && (shape[begin - 1] == 1 || reduced(begin - 1) == inner_reduced_)) --begin;
  row_rank_ = int(begin);
  inner_ = extent_of(shape, begin, end);
  (inner_reduced_ ? positions_ : outputs_) = inner_;
  int64_t rows = 1;
  int last = -1;  // kind of the axis just inside
  for (size_t axis = begin; axis-- > 0;) {
    if (shape[axis] == 1) continue;
    const bool kind = reduced(axis);
    std::vector<Axis>& own = kind ? reduced_ : kept_;
    if (last == int(kind)) {
      own.front().extent *= shape[axis];
    } else {
      own.insert(own.begin(), {shape[axis], rows});
    }
    last = int(kind);
    rows *= shape[axis];
    (kind ? positions_ : outputs_) *= shape[axis];
  }
  short_rows_ = inner_reduced_ && inner_ > 0 && inner_ <= short_row && reduced_.empty();
  if (short_rows_) row_rank_ = 0;
}

void ReduceProgram::lay_out(int threads) {
  block_ = inner_reduced_ ? std::min<int64_t>(block_states, std::max<int64_t>(outputs_, 1))
                          : std::min(block_states, inner_);
  const int64_t rows = inner_ == 0 ? 0 : outputs_ / std::max<int64_t>(inner_, 1);
  const double ns = reader_->cost() + 0.3;
  const double total = double(outputs_) * double(positions_) * ns;
  if (inner_reduced_) {
    // Fewer results a task where that feeds more threads.
    const auto wanted = int64_t(std::min(total / share_ns, 4.0 * threads)) + 1;
    block_ = std::max<int64_t>(1, std::min(block_, outputs_ / wanted));
    if (short_rows_) block_ = std::min(block_, row_chunk / 2 / std::max<int64_t>(inner_, 1));
    blocks_ = (outputs_ + block_ - 1) / std::max<int64_t>(block_, 1);
  } else {
    blocks_ = block_ == 0 ? 0 : rows * ((inner_ + block_ - 1) / block_);
  }
  if (blocks_ < threads && total > 4 * share_ns) {
    parts_ = std::clamp<int64_t>(positions_ / 64, 1, threads);
  }
  grain_ = std::max<int64_t>(1, int64_t(share_ns * double(std::max<int64_t>(blocks_, 1)) /
                                        std::max(total, 1.0)));
  const size_t item = std::max({result_item_, out_item_, size_t(8)});
  scratch_ = padded(reader_->scratch_bytes()) +
             padded(size_t(block_) * loops_.a_bytes) + padded(size_t(block_) * loops_.b_bytes) +
             padded(size_t(std::max(row_chunk, block_)) * 16) +
             2 * padded(size_t(block_) * item);
  workspace_ = scratch_ * size_t(threads);
  if (parts_ > 1) {
    workspace_ += size_t(parts_) * (padded(size_t(outputs_) * loops_.a_bytes) +
                                    padded(size_t(outputs_) * loops_.b_bytes));
  }
}

// Rows of one state: positions [begin, end) along the reduction.
void ReduceProgram::reduce_rows(Task& task, int64_t row, int64_t state, int64_t begin,
                                int64_t end) const {
  std::byte* a = task.a + state * int64_t(loops_.a_bytes);
  std::byte* b = task.b + state * int64_t(loops_.b_bytes);
  for (int64_t at = begin; at < end;) {
    const int64_t outer = at / inner_, column = at - outer * inner_;
    const int64_t n = std::min({inner_ - column, end - at, row_chunk});
    const int64_t place = reduced_.empty() ? row : row + row_of(reduced_, outer);
    loops_.row(a, b, task.cursor.read(place, column, n, task.buffer), n, at);
    at += n;
  }
}

// The rows of n states at once: the values of all at one position join as a column.
void ReduceProgram::reduce_short_rows(Task& task, int64_t first, int64_t n) const {
  const void* rows = task.cursor.read(0, first * inner_, n * inner_, task.buffer);
  std::byte* column = task.buffer + row_chunk / 2 * int64_t(item_);
  const Strided gather = gather_loop(item_);
  for (int64_t at = 0; at < inner_; ++at) {
    gather(column, static_cast<const std::byte*>(rows) + at * int64_t(item_), inner_, n);
    loops_.column(task.a, task.b, column, n, at);
  }
}

// Columns [column, column + n), one for each state.
void ReduceProgram::reduce_columns(Task& task, int64_t row, int64_t column, int64_t n,
                                   int64_t begin, int64_t end) const {
  for (int64_t at = begin; at < end; ++at) {
    const int64_t place = row + row_of(reduced_, at);
    loops_.column(task.a, task.b, task.cursor.read(place, column, n, task.buffer), n, at);
  }
}

// The states of results [first, first + n), which are one block.
void ReduceProgram::reduce_states(Task& task, int64_t first, int64_t n, int64_t begin,
                                  int64_t end) const {
  loops_.start(task.a, task.b, n);
  if (!inner_reduced_) {
    const int64_t outer = first / inner_;
    reduce_columns(task, row_of(kept_, outer), first - outer * inner_, n, begin, end);
    return;
  }
  if (short_rows_) return reduce_short_rows(task, first, n);
  for (int64_t k = 0; k < n; ++k) reduce_rows(task, row_of(kept_, first + k), k, begin, end);
}

void ReduceProgram::finish(Task& task, int64_t first, int64_t n, void* out) const {
  auto* to = static_cast<std::byte*>(out) + first * int64_t(out_item_);
  void* result = cast_ || store_ ? task.result : to;
  loops_.finish(result, task.a, task.b, n, positions_);
  if (cast_) {
    void* cast = store_ ? task.cast : to;
    cast_(cast, result, nullptr, nullptr, n);
    result = cast;
  }
  if (store_) store_(to, result, nullptr, nullptr, n);
}

void ReduceProgram::run(const void* const* inputs, void* out, void* workspace,
                        int threads) const {
  if (outputs_ == 0) return;
  auto* base = static_cast<std::byte*>(workspace);
  const size_t a_bytes = padded(size_t(outputs_) * loops_.a_bytes);
  const size_t b_bytes = padded(size_t(outputs_) * loops_.b_bytes);
  std::byte* partial = base + workspace_ - (parts_ > 1 ? size_t(parts_) * (a_bytes + b_bytes) : 0);
  parallel_for(threads, blocks_ * parts_, parts_ > 1 ? 1 : grain_, [&](int64_t from, int64_t to) {
    std::byte* scratch = base + size_t(team_share()) * scratch_;
    Task task = make_task(inputs, scratch);
    for (int64_t k = from; k < to; ++k) {
      const int64_t part = k / blocks_, block = k - part * blocks_;
      const auto [first, n] = block_at(block);
      if (parts_ > 1) {
        std::byte* own = partial + size_t(part) * (a_bytes + b_bytes);
        task.a = own + first * int64_t(loops_.a_bytes);
        task.b = own + a_bytes + first * int64_t(loops_.b_bytes);
      }
      reduce_states(task, first, n, positions_ * part / parts_, positions_ * (part + 1) / parts_);
      if (parts_ == 1) finish(task, first, n, out);
    }
  });
  if (parts_ == 1) return;
  for (int64_t part = 1; part < parts_; ++part) {
    std::byte* own = partial + size_t(part) * (a_bytes + b_bytes);
    loops_.merge(partial, partial + a_bytes, own, own + a_bytes, outputs_);
  }
  Task task = make_task(inputs, base);
  for (int64_t first = 0; first < outputs_; first += block_) {
    task.a = partial + first * int64_t(loops_.a_bytes);
    task.b = partial + a_bytes + first * int64_t(loops_.b_bytes);
    finish(task, first, std::min(block_, outputs_ - first), out);
  }
}

// The results of a task: contiguous, and within one row where columns are reduced.
std::pair<int64_t, int64_t> ReduceProgram::block_at(int64_t block) const {
  if (inner_reduced_) {
    const int64_t first = block * block_;
    return {first, std::min(block_, outputs_ - first)};
  }
  const int64_t blocks = (inner_ + block_ - 1) / block_, row = block / blocks;
  const int64_t column = (block - row * blocks) * block_;
  return {row * inner_ + column, std::min(block_, inner_ - column)};
}

ReduceProgram::Task ReduceProgram::make_task(const void* const* inputs, std::byte* scratch) const {
  Task task{RowReader::Cursor(*reader_, inputs, scratch), nullptr, nullptr, nullptr, nullptr,
            nullptr};
  const auto take = [&](size_t bytes) {
    std::byte* at = scratch;
    scratch += padded(bytes);
    return at;
  };
  take(reader_->scratch_bytes());
  task.a = take(size_t(block_) * loops_.a_bytes);
  task.b = take(size_t(block_) * loops_.b_bytes);
  task.buffer = take(size_t(std::max(row_chunk, block_)) * 16);
  const size_t item = std::max({result_item_, out_item_, size_t(8)});
  task.result = take(size_t(block_) * item);
  task.cast = take(size_t(block_) * item);
  return task;
}

ReduceLoops reduce_loops(ReduceKind kind, DType type, bool select_last_index) {
#if defined(__x86_64__)
  switch (cpu_isa()) {
    case Isa::avx512: return reduce_loops_for<Isa::avx512>(kind, type, select_last_index);
    case Isa::avx2: return reduce_loops_for<Isa::avx2>(kind, type, select_last_index);
    case Isa::portable: break;
  }
#endif
  return reduce_loops_for<Isa::portable>(kind, type, select_last_index);
}

}  // namespace rlx::cpu
